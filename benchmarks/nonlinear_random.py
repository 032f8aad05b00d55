"""Models with trees on tables that nobody chose: ``python -m benchmarks.nonlinear_random``, in five minutes.

Tables and targets are drawn at random, as in `clean_tables`, and shuffled; every record is predicted before it is
learned from, with 0 and 20 % gross errors. The figure is the mean absolute error on clean rows from row 50 on, relative
to that of the linear model. The oracle is the better one of boosted trees, which are refitted on the clean rows so far,
and the linear model. Seed 41 was looked at once, when nothing was changed any more.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from benchmarks.clean_tables import draw_tables
from benchmarks.nonlinear import errors, play
from benchmarks.nonlinear_peers import refit_boosted
from benchmarks.nonlinear_streams import KINDS, Stream, spoil_table
from benchmarks.table_errors import encode

SHARES = (0.0, 0.2)
WIDEST = 100
"""Encoded features of a table, at most."""

EXACT = 1e-9
"""Errors below this part of the spread of the target are none."""


def draw_streams(seed: int, share: float, tables: int) -> Iterator[Stream]:
    """Random tables, shuffled, with a share of errors whose kinds alternate."""
    place = 0
    for name, frame, target in draw_tables(seed):
        if place == tables:
            break
        try:
            features = encode(frame, target)
        except ValueError:  # no column can be encoded
            continue
        if features.shape[1] > WIDEST:
            continue
        random = np.random.default_rng([seed, place, int(100 * share)])
        order = np.random.default_rng([seed, place]).permutation(len(frame))
        X = np.column_stack([features, np.ones(len(frame))])[order]
        y = frame[target].to_numpy(np.float64)[order]
        yield spoil_table(f"{name}: {target}", X, y, KINDS[place % len(KINDS)], True, share, random)
        place += 1


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--tables", type=int, default=40, help="how many to draw")
    parser.add_argument("--seed", type=int, default=41, help="of the draw")
    parser.add_argument("--no-oracle", action="store_true", help="skip boosted trees, which take most of the time")
    chosen = parser.parse_args()
    for share in SHARES:
        found = []
        for stream in draw_streams(chosen.seed, share, chosen.tables):
            exact = EXACT * float(np.std(stream.truth)) + 1e-300
            linear, trees = (max(play(features, stream).mean, exact) for features in ("linear", "auto"))
            best = np.nan if chosen.no_oracle else max(errors(refit_boosted(stream, oracle=True), stream)[0], exact)
            found.append((trees / linear, min(best / linear, 1.0)))
            told = f"trees {found[-1][0]:.3f}, oracle {found[-1][1]:.3f}"
            print(f"{share:4.0%} {told}  n={len(stream.y):5d} d={stream.X.shape[1]:3d} {stream.name}", flush=True)
        trees, best = np.array(found).T
        means = (float(np.exp(np.mean(np.log(ratios)))) for ratios in (trees, best, trees / best))
        print(
            "{:4.0%} geometric means: trees {:.3f}, oracle {:.3f}, trees / oracle {:.3f}; ".format(share, *means),
            end="",
        )
        within = f"at most 1.03 on {np.count_nonzero(trees <= 1.03)} of {len(trees)}"
        print(f"worst {trees.max():.3f}, {within}, at most 1.3 oracles on {np.count_nonzero(trees <= 1.3 * best)}\n")


if __name__ == "__main__":
    main()

r"""The suite: every learner in hundreds of settings, against an oracle with the best step in hindsight.

Its settings are a balanced, seeded fraction of all combinations. Learners with a step play at 1/√T and with the best
step in hindsight. To add a learner, write a line in `PEERS` if it has a step, or in `UNTUNED` if it has none.

There are six factors: when outliers come, what they are, how many, drift, noise, and feature scales. Each block of 25
settings is an orthogonal array: rows (i, j) and columns i, j, i + j, i + 2j, i + 3j, i + 4j modulo 5 contain every pair
of levels of every two factors exactly once. A factor with three or four levels repeats some of them. Each block
shuffles the levels and uses the next number of features.

>>> settings = choose_settings(seed=0)
>>> len(settings)
361
>>> print(settings[0].description)
regression: the stream nox; no outliers, k = 0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from redescend import adversaries, losses, steps, streams, transforms
from redescend.adversaries.oblivious import TIMES
from redescend.errors import DivergenceError
from redescend.experiments.problems import ORACLE, Problem, resolve_outlier_count, ridge, svm
from redescend.experiments.results import Block, Experiment, Options, Task, make_point
from redescend.game import Stream, Trace, play
from redescend.learners.experts import LearnWithExperts
from redescend.learners.learner import Learner
from redescend.learners.recipes import OGD, ClippedOGD, Learn, NormalisedOGD, Oracle, Robust, TopK
from redescend.learners.selftuning import SelfTuning
from redescend.regret import clean_dynamic
from redescend.streams import DRIFTS, NOISES, real

TASKS = ("regression", "classification")
WHATS = ("response replaced", "response shifted", "sign flipped", "x scaled by 1000", "x and y replaced")
COUNTS = ("√T", "T^⅔", "T/10", "T/4")
SCALES = {"1": (1.0, 1.0), "0.001 to 1000": (1e-3, 1e3), "0.001": (1e-3, 1e-3), "1000": (1e3, 1e3)}
DIMS = (10, 20, 30)
BLOCKS = 6  # orthogonal arrays for each of `TASKS`

SYNTHETIC, NONE, ADAPTIVE = "synthetic", "none", "adaptive"
OWN = "its own"  # the drift, noise and scales of a real stream

INJECTED = (
    ("random", "x scaled by 1000", "T/10"),
    ("random", "sign flipped", "T/4"),
    ("burst", "response shifted", "T/10"),
)
"""Corruptions of a real stream, in addition to none."""


@dataclass(frozen=True)
class SuiteSetting:
    """One game for all learners. The tidy table stores its `name` and `count`, which `parse` reads."""

    task: str
    source: str
    drift: str
    noise: str
    scales: str
    when: str
    what: str
    count: str
    dim: int

    @property
    def name(self) -> str:
        parts = (self.task, self.source, self.drift, self.noise, self.scales, self.when, self.what, str(self.dim))
        return "; ".join(parts)

    @classmethod
    def parse(cls, name: str, count: str) -> SuiteSetting:
        task, source, drift, noise, scales, when, what, dim = name.split("; ")
        return cls(task, source, drift, noise, scales, when, what, count, int(dim))

    @property
    def description(self) -> str:
        """A description in words.

        >>> parts = ("regression", "synthetic", "jump", "student", "1", "burst", "sign flipped", "T/4", 20)
        >>> print(SuiteSetting(*parts).description)
        regression: sign flipped in a burst, k = T/4; the truth jumps, Student's noise, features of size 1, d = 20
        """
        outliers = f"{self.what} {_WHEN[self.when]}, k = {self.count}" if self.count != "0" else "no outliers, k = 0"
        if self.source != SYNTHETIC:
            return f"{self.task}: the stream {self.source}; {outliers}"
        stream = f"{_DRIFT[self.drift]}, {_NOISE[self.noise]}, features of size {self.scales}, d = {self.dim}"
        return f"{self.task}: {outliers}; {stream}"


_WHEN = {
    "random": "at random",
    "burst": "in a burst",
    "periodic": "periodically",
    "first": "in the first rounds",
    "last": "in the last rounds",
    ADAPTIVE: "by an adversary that sees the action",
    NONE: "",
}
_DRIFT = {"none": "the truth is fixed", "jump": "the truth jumps", "rotation": "the truth rotates"}
_NOISE = {"gaussian": "normal noise", "student": "Student's noise", "heteroscedastic": "heteroscedastic noise"}


def choose_settings(seed: int, quick: bool = False) -> list[SuiteSetting]:
    """The settings of the suite for a seed, real streams first, without duplicates; `quick` gives fewer."""
    random = np.random.default_rng([seed, 5])
    settings = [*_list_real_settings(quick)]
    for task in TASKS:
        clean = list(_list_clean_settings(task, random))
        settings += [*clean[: 4 if quick else None]]
        for block in range(1 if quick else BLOCKS):
            settings += _list_block_settings(task, DIMS[block % len(DIMS)], random)
        adaptive = list(_list_adaptive_settings(task))
        settings += adaptive[: 1 if quick else None]
    return list(dict.fromkeys(settings))


def _list_real_settings(quick: bool) -> Iterator[SuiteSetting]:
    for task, names in zip(TASKS, (real.REGRESSION, real.CLASSIFICATION), strict=True):
        for name in names[:: 3 if quick else 1]:
            stream = (task, name, OWN, OWN, OWN)
            yield SuiteSetting(*stream, NONE, NONE, "0", 0)
            for when, what, count in INJECTED[: 1 if quick else None]:
                yield SuiteSetting(*stream, when, what, count, 0)


def _list_clean_settings(task: str, random: np.random.Generator) -> Iterator[SuiteSetting]:
    """Every pair of levels of drift, noise and scales, as a Latin square of noise."""
    turned = random.permutation(len(NOISES))
    for place, scales in enumerate(SCALES):
        for row, drift in enumerate(DRIFTS):
            noise = NOISES[turned[(row + place) % len(NOISES)]]
            yield SuiteSetting(task, SYNTHETIC, drift, noise, scales, NONE, NONE, "0", DIMS[(row + place) % len(DIMS)])


def _list_block_settings(task: str, dim: int, random: np.random.Generator) -> Iterator[SuiteSetting]:
    # Features of size 1 have two of the five places, because a fixed step is poor at other scales.
    factors = (TIMES, WHATS, COUNTS, DRIFTS, NOISES, ("1", *SCALES))
    # The level of each of five places; a factor with fewer levels has some of them twice.
    levels = [random.permutation(np.resize(random.permutation(len(factor)), 5)) for factor in factors]
    for i in range(5):
        for j in range(5):
            places = (i, j, *((i + times * j) % 5 for times in range(1, 5)))
            when, what, count, drift, noise, scales = (
                factor[levels_of[place]] for factor, levels_of, place in zip(factors, levels, places, strict=True)
            )
            yield SuiteSetting(task, SYNTHETIC, drift, noise, scales, when, what, count, dim)


def _list_adaptive_settings(task: str) -> Iterator[SuiteSetting]:
    """An adversary that sees the action and chooses the record, with each drift."""
    for drift, noise, count in zip(("none", *DRIFTS), ("gaussian", *NOISES), ("T^⅔", *["√T"] * 3), strict=True):
        yield SuiteSetting(task, SYNTHETIC, drift, noise, "1", ADAPTIVE, "record chosen", count, DIMS[0])


# --- the game of a setting ---

NOISE = {"regression": 0.05, "classification": 0.1}  # standard deviation of the noise, relative to that of the signal

ADAPTIVE_ROUNDS = 1_000
"""Maximum length with an adversary that tries its choices on the learner, which takes a thousand times as long."""

RULES = {"regression": replace(ridge(), loss=losses.Squared()), "classification": replace(svm(), loss=losses.Hinge())}
"""The paper's constants for each task, without l2: with features of size 0.001 it would make 0 the best action."""


@dataclass(frozen=True, eq=False)
class Game:
    """A stream for every learner; corrupted unless the adversary adapts to the learner."""

    setting: SuiteSetting
    stream: Stream
    seed: tuple[int, ...]

    @property
    def rules(self) -> Problem:
        return RULES[self.setting.task]

    @property
    def rounds(self) -> int:
        return len(self.stream)

    @property
    def k(self) -> int:
        return resolve_outlier_count(self.setting.count, self.rounds)

    def play(self, learner: Learner) -> float:
        """Final clean dynamic regret against the minimizer of each round; infinite if the learner diverged."""
        # An oracle skips the corrupted rounds, so it does not matter what the adversary does there.
        adaptive = self.setting.when == ADAPTIVE and not isinstance(learner, Oracle)
        try:
            trace, played = self._play_adaptive(learner) if adaptive else (play(learner, self.stream), self.stream)
        except DivergenceError:
            return np.inf
        return float(clean_dynamic(trace, played, self.rules.loss)[-1])

    def _play_adaptive(self, learner: Learner) -> tuple[Trace, Stream]:
        # Only three residuals, because each is tried on the learner: a tenth of the signal, the signal, ten times it.
        adversary = adversaries.Adaptive(self.rules.loss, smallest=0.1, largest=10.0, sizes=3)
        return adversary.play(learner, self.stream.uncorrupted(), self.k, self.seed)


def make_game(setting: SuiteSetting, rounds: int, seed: tuple[int, ...]) -> Game:
    """The game of a setting with this length; a real stream may be shorter."""
    clean = _make_clean_stream(setting, rounds, seed)
    k = resolve_outlier_count(setting.count, len(clean))
    when = "random" if setting.when == ADAPTIVE else setting.when
    # The seed draws the same rounds for an adaptive adversary, so that an oracle can skip them.
    return Game(setting, clean if k == 0 else _make_adversary(setting, clean).corrupt(clean, k, seed, when), seed)


def _make_clean_stream(setting: SuiteSetting, rounds: int, seed: tuple[int, ...]) -> Stream:
    if setting.source != SYNTHETIC:
        return real.load(setting.source, rounds)
    make = {"regression": streams.regression, "classification": streams.classification}[setting.task]
    return make(
        min(rounds, ADAPTIVE_ROUNDS) if setting.when == ADAPTIVE else rounds,
        [*seed, 1],
        setting.dim,
        drift=setting.drift,
        noise=setting.noise,
        noise_scale=NOISE[setting.task],
        feature_scales=SCALES[setting.scales],
    )


def _make_adversary(setting: SuiteSetting, clean: Stream) -> adversaries.Adversary:
    """The adversary of a setting, at the scale of the stream."""
    labels = setting.task == "classification"
    size = float(np.sqrt(np.mean(clean.X**2)))
    return {
        "response replaced": adversaries.ReplaceResponse(),
        # A shifted label is a label that is always +1.
        "response shifted": adversaries.UniformResponse(1.0, 1.0)
        if labels
        else adversaries.ShiftResponse(10.0 * float(clean.y.std())),
        "sign flipped": adversaries.ScaleResponse(-1.0),
        "x scaled by 1000": adversaries.ScaleFeatures(1e3),
        "x and y replaced": adversaries.ReplaceRecord(scale=size),
        "record chosen": adversaries.ScaleResponse(-1.0),
    }[setting.what]


BEST = ", best step"  # suffix of the name of a learner with the best step in hindsight
POWERS = range(-24, 9)  # powers of 2 of a step's unit; the smallest are for records that are a thousand times too large

ROUNDS, QUICK_ROUNDS = 10_000, 1_000
SETTINGS_PER_TASK = 4

NORMALISED = "normalised OGD"

Peer = Callable[[Game, steps.Step], Learner]


def _make_robust_peer(kind: type[transforms.Huber] | type[transforms.Cauchy] | type[transforms.Welsch]) -> Peer:
    return lambda game, step: Robust(game.stream.dim, loss=game.rules.loss, transform=kind(game.rules.c), step=step)


PEERS: dict[str, Peer] = {
    "LEARN": lambda game, step: Learn(game.stream.dim, loss=game.rules.loss, a=game.rules.a, b=game.rules.b, step=step),
    "OGD": lambda game, step: OGD(game.stream.dim, loss=game.rules.loss, step=step),
    "Top-k": lambda game, step: TopK(game.stream.dim, loss=game.rules.loss, k=game.k, step=step),
    NORMALISED: lambda game, step: NormalisedOGD(game.stream.dim, loss=game.rules.loss, step=step),
    "median clip": lambda game, step: ClippedOGD(game.stream.dim, loss=game.rules.loss, step=step),
    "Huber": _make_robust_peer(transforms.Huber),
    "Cauchy": _make_robust_peer(transforms.Cauchy),
    "Welsch": _make_robust_peer(transforms.Welsch),
    ORACLE: lambda game, step: Oracle(game.stream.dim, loss=game.rules.loss, clean=game.stream.clean, step=step),
}
"""Learners with a step. Top-k knows k, and the oracle knows which rounds are clean."""

UNTUNED: dict[str, Callable[[Game], Learner]] = {
    "self-tuning, order 1": lambda game: SelfTuning(game.stream.dim, loss=game.rules.loss, order=1),
    "self-tuning, order 2": lambda game: SelfTuning(game.stream.dim, loss=game.rules.loss, order=2),
    "LEARN with experts": lambda game: LearnWithExperts(
        game.stream.dim, loss=game.rules.loss, a=game.rules.a, b=game.rules.b, meta="robust"
    ),
}
"""Learners without a step. The report lists where the first of them loses."""

Result = tuple[str, float, float]
"""A learner, its final regret, infinite if it diverged, and its step, NaN if it has none."""


def play_all(game: Game) -> Iterator[Result]:
    """Play a game with every learner."""
    for name, untuned in UNTUNED.items():
        yield name, game.play(untuned(game)), np.nan
    for name in PEERS:
        yield name, *_play_with_step(game, name, steps.Horizon(game.rounds))
        yield f"{name}{BEST}", *_play_with_best_step(game, name)


def _play_with_step(game: Game, name: str, step: steps.Step) -> tuple[float, float]:
    return game.play(PEERS[name](game, step)), step.settings[0]


def _play_with_best_step(game: Game, name: str) -> tuple[float, float]:
    """The lowest regret over steps that are powers of 2.

    For the oracle all powers are tried, since every ratio depends on it; for a peer every fourth, then those near the
    best.
    """
    unit, stride = compute_unit_step(game, name), 1 if name == ORACLE else 4

    def at(power: int) -> tuple[float, float]:
        return _play_with_step(game, name, steps.Constant(unit * 2.0**power))

    tried = {power: at(power) for power in POWERS[::stride]}
    best = min(tried, key=lambda power: tried[power])
    return min([*tried.values(), *(at(power) for power in POWERS if 0 < abs(power - best) < stride)])


def compute_unit_step(game: Game, name: str) -> float:
    r"""The step at the stream's own scale: 1/N for a gradient step, with N the median of ‖x‖².

    A normalised step has the unit of an action: the root mean square of y, divided by √N.
    """
    clean = game.stream.clean
    size = float(np.median(np.square(game.stream.X[clean]).sum(axis=1)))
    return float(np.sqrt(np.mean(game.stream.y[clean] ** 2) / size)) if name == NORMALISED else 1.0 / size


def _list_tasks(options: Options) -> Iterator[Task]:
    """One run of each setting, whatever the number of runs: the suite averages over settings."""
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    for first in range(0, len(choose_settings(options.seed, options.quick)), SETTINGS_PER_TASK):
        settings = (("first", first), ("quick", int(options.quick)), ("rounds", rounds), ("seed", options.seed))
        yield Task("suite", settings)


def _compute_settings(first: int, quick: int, rounds: int, seed: int) -> Iterator[Block]:
    settings = choose_settings(seed, bool(quick))
    for place in range(first, min(first + SETTINGS_PER_TASK, len(settings))):
        setting = settings[place]
        game = make_game(setting, rounds, (seed, place))
        columns = {"experiment": "suite", "problem": setting.name, "run": 0, "rounds": game.rounds}
        columns |= {"count": setting.count, "k": game.k}
        for learner, regret, step in play_all(game):
            row, finite = {**columns, "learner": learner}, np.isfinite(regret)
            final = ("final regret", regret) if finite else ("diverged", 1.0)
            yield row | make_point(game.rounds, *final)
            if finite and np.isfinite(step):
                yield row | make_point(game.rounds, "step", step)


SUITE = Experiment(_list_tasks, _compute_settings)

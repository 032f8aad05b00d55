"""A heat map of suspects, columns against rows of a table, as an SVG file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from redescend.numeric import Array
from redescend.streaming.report.formatting import abbreviate, format_percent

WIDTH, HEIGHT, LETTER, TOP, BOTTOM = 800, 18, 7, 34, 44
"""Of the map, of a column, of a letter, and of the margins, in pixels."""

DARKEST = 0.2  # stretches with at least this share of suspects are darkest
LONGEST = 28  # letters of the name of a column that are shown


def draw_heat_map(columns: Sequence[str], shares: Array, records: int) -> str:
    """Draw the `shares` of suspects, a row for each column, a place for each stretch of the table."""
    names = [abbreviate(name, LONGEST) for name in columns]
    left = 12 + LETTER * max(map(len, names))
    bottom, each = TOP + HEIGHT * len(names), WIDTH / shares.shape[1]
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + WIDTH + 12}" height="{bottom + BOTTOM}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{left}" y="20">Share of suspect cells, from none (grey) to {DARKEST:.0%} or more (dark red)</text>',
    ]
    for place, name in enumerate(names):
        y = TOP + HEIGHT * place
        out.append(f'<text x="{left - 6}" y="{y + 13}" text-anchor="end">{escape(name)}</text>')
        out.append(f'<rect x="{left}" y="{y + 1}" width="{WIDTH}" height="{HEIGHT - 2}" fill="#f3f3f3"/>')
        for at in np.flatnonzero(shares[place]).tolist():
            share = float(shares[place, at])
            # A single suspect must be visible.
            strength = 0.25 + 0.75 * min(1.0, share / DARKEST)
            first, last = (round(end * records / shares.shape[1]) for end in (at, at + 1))
            out.append(
                f'<rect x="{left + each * at:.1f}" y="{y + 1}" width="{each:.1f}" height="{HEIGHT - 2}" fill="#b2182b" '
                f'fill-opacity="{strength:.2f}"><title>{escape(columns[place])}, rows {first + 1:,} to {last:,}: '
                f"{format_percent(share)}</title></rect>"
            )
    for part in range(5):
        x, anchor = left + WIDTH * part / 4, "start" if part == 0 else "end" if part == 4 else "middle"
        row = max(1, round(records * part / 4))
        out.append(f'<text x="{x:.0f}" y="{bottom + 16}" text-anchor="{anchor}">{row:,}</text>')
    out.append(f'<text x="{left + WIDTH / 2:.0f}" y="{bottom + 34}" text-anchor="middle">row</text></svg>')
    return "\n".join(out)

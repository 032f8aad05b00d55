"""The fast loop, for domains whose projection only shortens the action: all of space, and balls.

At rest the action is θ = keep·previous − move·record: the last move is known but not yet carried out. A row then
takes one pass over the vectors, which carries out an old move and takes the products with the new row.

- Narrow rows: the move of two rounds ago is carried out, and the last one enters by
  ⟨x, θ⟩ = keep·⟨x, previous⟩ − move·⟨x, record⟩. No vector waits for the scalars of the round before, so exp and
  division cost nothing.
- Wide rows: the last move is carried out in the same pass that takes the product, which saves reading one row.

A row is the same instructions wherever a stream is cut, so any cut gives the same bits. ‖θ‖² is kept from round to
round, and taken anew every 256 rounds and whenever it falls so far that digits were lost.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from redescend import gates
from redescend.kernels import layout
from redescend.kernels.compiler import compiled, inlined, muladd, pointer, prefetch, summing
from redescend.kernels.descent.decision import decide, memory_of, playable, settings_of
from redescend.kernels.layout import Live, Settings
from redescend.numeric import Array

WIDE = 500
REFRESH = 256
# ‖θ‖² is taken anew when it has fallen to this share of what it was.
LOST = 1e-3
# Rows up to this size are asked for this far ahead; longer ones the processor foresees by itself.
FETCH_ROW, FETCH_AHEAD, LINE = 2048, 4096, 64


@inlined
def move_on(out: Array, theta: Array, keep: float, step: float, record: Array) -> None:
    """out ← keep·theta − step·record."""
    number = out.dtype.type
    k, m = number(keep), number(step)
    for j in range(len(out)):
        out[j] = muladd(k, theta[j], -(m * record[j]))


@inlined
def vector(address: int, dim: int, like: Array) -> Array:
    """The dim numbers at an address, as an array that is not counted."""
    return carray(pointer(address), dim, like.dtype)


@inlined
def load(numbers: Array) -> Live:
    return Live(
        int(numbers[layout.ROUNDS]),
        numbers[layout.TRAVELLED],
        numbers[layout.NORM2],
        numbers[layout.PEAK],
        numbers[layout.KEEP],
        numbers[layout.MOVE],
        1.0,
        0.0,
    )


@summing
def predict(now: Live, previous: Array, last: Array, older: Array, x: Array) -> tuple[Live, float, float]:
    """⟨x, θ⟩ and ‖x‖², in the pass that carries out an old move."""
    number = x.dtype.type
    dim = len(x)
    product, cross, square = number(0.0), number(0.0), number(0.0)
    if dim >= WIDE:
        keep, move = number(now.keep), number(now.move)
        for j in range(dim):
            v = muladd(keep, previous[j], -(move * last[j]))
            previous[j] = v
            product += v * x[j]
            square += x[j] * x[j]
        return Live(now.t, now.travelled, now.tt, now.peak, 1.0, 0.0, 1.0, 0.0), np.float64(product), np.float64(square)
    keep, move = number(now.older_keep), number(now.older_move)
    for j in range(dim):
        v = muladd(keep, previous[j], -(move * older[j]))
        previous[j] = v
        product += v * x[j]
        cross += last[j] * x[j]
        square += x[j] * x[j]
    p = muladd(now.keep, np.float64(product), -(now.move * np.float64(cross)))
    return Live(now.t, now.travelled, now.tt, now.peak, now.keep, now.move, 1.0, 0.0), p, np.float64(square)


@inlined
def play(
    s: Settings, memory: Array, now: Live, p: float, xx: float, target: float
) -> tuple[Live, float, float, float, bool]:
    """The round in scalars: what it leaves, its loss, weight and gradient length, and whether ‖θ‖² lost digits."""
    f, weight, length, travelled, keep, move = decide(s, memory, now.t, now.travelled, p, xx, now.tt, target)
    shrunk, pushed = keep * keep * now.tt, move * move * xx
    tt = shrunk - 2.0 * keep * move * p + pushed
    peak = max(now.peak, shrunk + pushed)
    if weight > 0.0 and tt > s.radius2:
        shorten = np.sqrt(s.radius2 / tt)
        keep *= shorten
        move *= shorten
        tt = s.radius2
    stale = (now.t + 1) % REFRESH == 0 or tt < LOST * peak
    return Live(now.t + 1, travelled, tt, peak, keep, move, now.keep, now.move), f, weight, length, stale


@summing
def settle(now: Live, previous: Array, last: Array, older: Array) -> Live:
    """Carry out every move, and take ‖θ‖² anew."""
    if len(previous) < WIDE:
        move_on(previous, previous, now.older_keep, now.older_move, older)
    move_on(previous, previous, now.keep, now.move, last)
    tt = previous.dtype.type(0.0)
    for j in range(len(previous)):
        tt += previous[j] * previous[j]
    return Live(now.t, now.travelled, np.float64(tt), np.float64(tt), 1.0, 0.0, 1.0, 0.0)


@inlined
def rest(now: Live, previous: Array, last: Array, older: Array, pair: Array, numbers: Array) -> None:
    """Write everything back. In narrow rows the last move stays pending, in wide ones none does."""
    keep, move = now.keep, now.move
    if len(previous) < WIDE:
        move_on(previous, previous, now.older_keep, now.older_move, older)
    else:
        move_on(previous, previous, keep, move, last)
        keep, move = 1.0, 0.0
    for j in range(len(previous)):
        pair[1, j] = last[j]
    numbers[layout.ROUNDS], numbers[layout.TRAVELLED], numbers[layout.NORM2] = now.t, now.travelled, now.tt
    numbers[layout.KEEP], numbers[layout.MOVE], numbers[layout.PEAK] = keep, move, now.peak


@compiled
def action(pair: Array, numbers: Array, out: Array) -> None:
    """Write the action that the learner plays now."""
    move_on(out, pair[0], numbers[layout.KEEP], numbers[layout.MOVE], pair[1])


@compiled
def run(X: Array, y: Array, pair: Array, numbers: Array, losses: Array, weights: Array, actions: Array) -> int:
    """Play the rows of X until one cannot be played, and say how many were. That one changes nothing."""
    rows, dim = X.shape
    s = settings_of(numbers)
    memory = memory_of(numbers)
    now = load(numbers)
    number = X.dtype.type
    row_bytes = dim * X.itemsize
    previous = vector(pair.ctypes.data, dim, X)
    last = vector(pair.ctypes.data + row_bytes, dim, X)
    older = last
    row = 0
    while row < rows:
        here = X.ctypes.data + row * row_bytes
        if row_bytes <= FETCH_ROW:
            for line in range(0, row_bytes, LINE):
                prefetch(here + FETCH_AHEAD + line)
        x = vector(here, dim, X)
        target = y[row]
        now, p, xx = predict(now, previous, last, older, x)
        then, f, weight, length, stale = play(s, memory, now, p, xx, target)
        if not playable(s, p, xx, target, length, number(then.move), number(then.tt)):
            break
        if len(actions):
            move_on(actions[row], previous, now.keep, now.move, last)
        gates.remember(s.gate, memory, length)
        losses[row] = f
        weights[row] = weight
        now, older, last = then, last, x
        if stale:
            now = settle(now, previous, last, older)
        row += 1
    rest(now, previous, last, older, pair, numbers)
    return row


@compiled
def run_one(x: Array, target: float, pair: Array, numbers: Array) -> tuple[float, float]:
    """Play one record: its loss and its weight, which is `UNPLAYED` if it could not be played and changed nothing."""
    dim = len(x)
    number = x.dtype.type
    s = settings_of(numbers)
    memory = memory_of(numbers)
    now = load(numbers)
    previous = vector(pair.ctypes.data, dim, x)
    last = vector(pair.ctypes.data + dim * pair.itemsize, dim, x)
    now, p, xx = predict(now, previous, last, last, x)
    then, f, weight, length, stale = play(s, memory, now, p, xx, target)
    if not playable(s, p, xx, target, length, number(then.move), number(then.tt)):
        rest(now, previous, last, last, pair, numbers)
        return 0.0, layout.UNPLAYED
    gates.remember(s.gate, memory, length)
    if stale:
        then = settle(then, previous, x, last)
    rest(then, previous, x, last, pair, numbers)
    return f, weight

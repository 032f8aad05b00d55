"""One descent: a round in scalars, and the fast loop, for domains whose projection only shortens the action.

A round in scalars is everything that needs ⟨x, θ⟩, ‖x‖² and ‖θ‖² but not the vectors. The update θ ← Π(θ − α·w·∇f) is
θ ← Π(keep·θ − move·x), because ∇f = slope·x + l2·θ.

The loop is for all of space, and for balls. Between calls the action is θ = keep·previous − move·record: the last move
is known but not yet applied. A row then takes one loop over the vectors, which applies an old move and computes the
products with the new row.

- Narrow rows: the move of two rounds ago is applied, and the last one enters by
  ⟨x, θ⟩ = keep·⟨x, previous⟩ − move·⟨x, record⟩. No vector waits for the scalars of the round before, so exp and
  division cost nothing.
- Wide rows: the last move is applied in the loop that computes the product, which saves reading one row.

A row is the same instructions wherever a stream is cut, so any cut gives the same bits. ‖θ‖² is updated from round to
round, and recomputed every 256 rounds and whenever it falls so far that digits were lost.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from redescend import gates, steps, transforms
from redescend.kernels import layout
from redescend.kernels.compiler import compiled, inlined, muladd, pointer, prefetch, summing
from redescend.kernels.layout import DescentSettings, Scalars
from redescend.losses import linear
from redescend.numeric import LARGEST, Array

UNDERFLOW, CANCELLED = 1e-280, 1e-4


@inlined
def read_settings(config: Array) -> DescentSettings:
    """Read the settings from the array of a learner."""
    adaptive = config[layout.NORMALISED] != 0.0 or config[layout.STEP] == steps.PER_TRAVELLED
    needs_length = adaptive or gates.needs_length(int(config[layout.GATE]))
    return DescentSettings(
        int(config[layout.LOSS]),
        config[layout.LOSS_C],
        config[layout.L2],
        config[layout.MARGIN] != 0.0,
        int(config[layout.GATE]),
        int(config[layout.TRANSFORM]),
        config[layout.GATE_C],
        config[layout.GATE_B],
        int(config[layout.STEP]),
        config[layout.SCALE],
        config[layout.NORMALISED],
        config[layout.RADIUS2],
        needs_length,
    )


@inlined
def view_memory(config: Array) -> Array:
    """View the gate's memory in the array of a learner."""
    return config[int(config[layout.MEMORY]) :]


@inlined
def is_playable(s: DescentSettings, p: float, xx: float, target: float, length: float, move: float, tt: float) -> bool:
    """Check that everything is finite, and that the label is −1 or 1 if the loss needs one."""
    return abs(p) + xx + abs(target) + length + abs(move) + tt < np.inf and (not s.margin or target * target == 1.0)


@inlined
def penalised_loss(kind: int, c: float, l2: float, p: float, tt: float, y: float) -> float:
    """φ(p, y) + (l2/2)·‖θ‖², at most the largest float."""
    return min(linear.value(kind, c, p, y) + 0.5 * l2 * tt, LARGEST)


@inlined
def decide(
    s: DescentSettings, memory: Array, t: int, travelled: float, p: float, xx: float, tt: float, y: float
) -> tuple[float, float, float, float, float, float]:
    """Compute loss, weight, gradient length, √Σw²‖∇f‖², keep and move of round t (from 0), changing nothing.

    The length is NaN where it is needed but its square has lost its digits: such a round is not playable.
    """
    f = penalised_loss(s.loss, s.loss_c, s.l2, p, tt, y)
    slope = linear.slope(s.loss, s.loss_c, p, y)
    parts = slope * slope * xx + s.l2 * s.l2 * tt
    gg = max(parts + 2.0 * slope * s.l2 * p, 0.0)
    length = np.sqrt(gg)
    if s.needs_length and gg < UNDERFLOW + CANCELLED * parts and (slope != 0.0 or s.l2 * tt > 0.0):
        length = np.nan
    weight = gates.weigh(s.gate, s.transform, s.gate_c, s.gate_b, memory, t, f, length)
    if s.step == steps.PER_TRAVELLED:
        travelled = np.hypot(travelled, weight * length)
    rate = steps.size(s.step, s.scale, s.normalised, t + 1.0, travelled, length) * weight
    return f, weight, length, travelled, 1.0 - rate * s.l2, rate * slope


@compiled
def robust_slope(loss: int, setting: float, transform: int, c: float, b: float, p: float, y: float) -> float:
    """The derivative h'(φ)·φ' of a robust loss in the prediction p; NumPy takes ten times as long for one number."""
    f = penalised_loss(loss, setting, 0.0, p, 0.0, y)
    return transforms.weight(transform, c, b, f) * min(max(linear.slope(loss, setting, p, y), -LARGEST), LARGEST)


WIDE = 500
REFRESH = 256
# ‖θ‖² is recomputed when it has fallen to this share of its peak.
LOST = 1e-3
# Rows up to this size are prefetched this far ahead; the processor prefetches longer ones by itself.
FETCH_ROW, FETCH_AHEAD, LINE = 2048, 4096, 64


@inlined
def apply_move(out: Array, theta: Array, keep: float, step: float, record: Array) -> None:
    """out ← keep·theta − step·record."""
    number = out.dtype.type
    k, m = number(keep), number(step)
    for j in range(len(out)):
        out[j] = muladd(k, theta[j], -(m * record[j]))


@inlined
def view_vector(address: int, dim: int, like: Array) -> Array:
    """View the config at an address as an array without reference count."""
    return carray(pointer(address), dim, like.dtype)


@inlined
def load_state(config: Array) -> Scalars:
    """Read the scalar state from the array of a learner."""
    return Scalars(
        int(config[layout.ROUNDS]),
        config[layout.TRAVELLED],
        config[layout.NORM2],
        config[layout.PEAK],
        config[layout.KEEP],
        config[layout.MOVE],
        1.0,
        0.0,
    )


@summing
def move_and_predict(
    now: Scalars, previous: Array, last: Array, older: Array, x: Array
) -> tuple[Scalars, float, float]:
    """Compute ⟨x, θ⟩ and ‖x‖² in the loop that applies an old move."""
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
        now = Scalars(now.t, now.travelled, now.tt, now.peak, 1.0, 0.0, 1.0, 0.0)
        return now, np.float64(product), np.float64(square)
    keep, move = number(now.older_keep), number(now.older_move)
    for j in range(dim):
        v = muladd(keep, previous[j], -(move * older[j]))
        previous[j] = v
        product += v * x[j]
        cross += last[j] * x[j]
        square += x[j] * x[j]
    p = muladd(now.keep, np.float64(product), -(now.move * np.float64(cross)))
    return Scalars(now.t, now.travelled, now.tt, now.peak, now.keep, now.move, 1.0, 0.0), p, np.float64(square)


@inlined
def play_in_scalars(
    s: DescentSettings, memory: Array, now: Scalars, p: float, xx: float, target: float
) -> tuple[Scalars, float, float, float, bool]:
    """Play a round in scalars: the state after it, loss, weight, gradient length, and whether ‖θ‖² lost digits."""
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
    return Scalars(now.t + 1, travelled, tt, peak, keep, move, now.keep, now.move), f, weight, length, stale


@summing
def apply_moves(now: Scalars, previous: Array, last: Array, older: Array) -> Scalars:
    """Apply every move, and recompute ‖θ‖²."""
    if len(previous) < WIDE:
        apply_move(previous, previous, now.older_keep, now.older_move, older)
    apply_move(previous, previous, now.keep, now.move, last)
    tt = previous.dtype.type(0.0)
    for j in range(len(previous)):
        tt += previous[j] * previous[j]
    return Scalars(now.t, now.travelled, np.float64(tt), np.float64(tt), 1.0, 0.0, 1.0, 0.0)


@inlined
def store_state(now: Scalars, previous: Array, last: Array, older: Array, pair: Array, config: Array) -> None:
    """Write the state back. In narrow rows the last move stays pending, in wide ones none does."""
    keep, move = now.keep, now.move
    if len(previous) < WIDE:
        apply_move(previous, previous, now.older_keep, now.older_move, older)
    else:
        apply_move(previous, previous, keep, move, last)
        keep, move = 1.0, 0.0
    for j in range(len(previous)):
        pair[1, j] = last[j]
    config[layout.ROUNDS], config[layout.TRAVELLED], config[layout.NORM2] = now.t, now.travelled, now.tt
    config[layout.KEEP], config[layout.MOVE], config[layout.PEAK] = keep, move, now.peak


@compiled
def action(pair: Array, config: Array, out: Array) -> None:
    """Write the action that the learner plays now."""
    apply_move(out, pair[0], config[layout.KEEP], config[layout.MOVE], pair[1])


@inlined
def try_round(
    s: DescentSettings, memory: Array, now: Scalars, previous: Array, last: Array, older: Array, x: Array, target: float
) -> tuple[Scalars, Scalars, float, float, float, float, bool, bool]:
    """Compute a round: the state before and after, ⟨x, θ⟩, loss, weight, length; is ‖θ‖² stale, and is the round valid?

    The action is as it was, though an old move may have been applied.
    """
    number = x.dtype.type
    now, p, xx = move_and_predict(now, previous, last, older, x)
    then, f, weight, length, stale = play_in_scalars(s, memory, now, p, xx, target)
    valid = is_playable(s, p, xx, target, length, number(then.move), number(then.tt))
    return now, then, p, f, weight, length, stale, valid


@compiled
def run(X: Array, y: Array, pair: Array, config: Array, out: tuple[Array, ...]) -> int:
    """Play the rows of X until one cannot be played, which changes nothing; returns how many were played.

    `out` are the losses, weights, predictions and actions of `layout.Outcomes`.
    """
    losses, weights, predictions, actions = out
    rows, dim = X.shape
    s = read_settings(config)
    memory = view_memory(config)
    now = load_state(config)
    row_bytes = dim * X.itemsize
    previous = view_vector(pair.ctypes.data, dim, X)
    last = view_vector(pair.ctypes.data + row_bytes, dim, X)
    older = last
    row = 0
    while row < rows:
        here = X.ctypes.data + row * row_bytes
        if row_bytes <= FETCH_ROW:
            for line in range(0, row_bytes, LINE):
                prefetch(here + FETCH_AHEAD + line)
        x = view_vector(here, dim, X)
        now, then, p, f, weight, length, stale, valid = try_round(s, memory, now, previous, last, older, x, y[row])
        if not valid:
            break
        if len(actions):
            apply_move(actions[row], previous, now.keep, now.move, last)
        if len(predictions):
            predictions[row] = p
        gates.remember(s.gate, memory, length)
        losses[row] = f
        weights[row] = weight
        now, older, last = then, last, x
        if stale:
            now = apply_moves(now, previous, last, older)
        row += 1
    store_state(now, previous, last, older, pair, config)
    return row


@compiled
def run_one(x: Array, target: float, pair: Array, config: Array) -> tuple[float, float]:
    """Play one record; returns its loss and weight. A weight of `UNPLAYED` means that nothing changed."""
    dim = len(x)
    s = read_settings(config)
    memory = view_memory(config)
    previous = view_vector(pair.ctypes.data, dim, x)
    last = view_vector(pair.ctypes.data + dim * pair.itemsize, dim, x)
    now, then, _, f, weight, length, stale, valid = try_round(
        s, memory, load_state(config), previous, last, last, x, target
    )
    if not valid:
        store_state(now, previous, last, last, pair, config)
        return 0.0, layout.UNPLAYED
    gates.remember(s.gate, memory, length)
    if stale:
        then = apply_moves(then, previous, x, last)
    store_state(then, previous, x, last, pair, config)
    return f, weight

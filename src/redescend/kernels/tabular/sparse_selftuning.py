"""The self-tuning learner of order 1 on rows of non-zeros: the rounds of `selftuning`, at a cost of the non-zeros.

Two things cost all features: a snapshot, ever more seldom, and a leader that no follower is a copy of.
"""

from __future__ import annotations

from redescend.kernels.compiler import compiled, inlined, uncounted
from redescend.kernels.selftuning import layout
from redescend.kernels.selftuning.followers import within
from redescend.kernels.selftuning.layout import Config, Record, Scratch, Settings, scratch_of, settings_of
from redescend.kernels.selftuning.likelihood import begin, paid_for, playable, weigh
from redescend.kernels.selftuning.noise import size_of
from redescend.kernels.selftuning.novelty import SLOWLY, age
from redescend.kernels.selftuning.snapshots import next_place
from redescend.kernels.tabular.selftuning import rescaled
from redescend.kernels.tabular.sparse_copies import keep_mean, mean_of, note, refresh, stale, take_over
from redescend.kernels.tabular.sparse_layout import Output, parts_of
from redescend.kernels.tabular.sparse_members import (
    FOLLOWERS,
    catch_up,
    follow,
    grow_old,
    look,
    measure,
    predict,
    size2_of_mean,
)
from redescend.kernels.tabular.sparse_rows import gather
from redescend.numeric import Array


@inlined
def rebase(out: Output, j: int, ratio: float) -> None:
    """A feature in new units; what members predict stays the same."""
    members = len(out.kept)
    for i in range(members):
        for k in range(members):
            both = out.kept[i] * out.thetas[j, i] * out.kept[k] * out.thetas[j, k]
            out.products[i, k] += both * (ratio * ratio - 1.0)
    for i in range(members):
        out.thetas[j, i] = within(out.thetas[j, i] * ratio, layout.FARTHEST)
    out.squares[j] = rescaled(out.squares[j], ratio)


@inlined
def play(
    s: Settings,
    out: Output,
    dim: int,
    features: Array,
    z: Array,
    count: int,
    norm2: float,
    y: float,
    times: float,
    config: Config,
    now: Scratch,
    metric: Array,
    keeps: Array,
    moves: Array,
) -> float:
    """One round; returns how much of the record was believed."""
    weights, scalars = out.weights, out.scalars
    scalars[layout.ROUNDS] += 1.0
    if not playable(s, norm2, y):
        return 0.0
    factor, active = scalars[layout.TEMPERATURE], 0.0
    for i in range(len(weights)):
        active += 1.0 if weights[i] > 0.0 else 0.0
    if s.l2 > 0.0 and stale(out, dim):
        refresh(out, dim)
    p = predict(out, dim, features, z, count, now)
    due = scalars[layout.SEEN] + 1.0 >= scalars[layout.DUE]
    mean = mean_of(out, dim) if due else moves
    f = paid_for(s, p, y, factor, size2_of_mean(out) if s.l2 > 0.0 else 0.0)
    size = size_of(s.kind, s.labels, f, p, y)
    if not begin(s, norm2, f, size, len(out.cells), scalars):
        return 1.0
    typical, scaled = measure(out, features, z, count, norm2, metric)
    power = min(1.0, typical / norm2) if s.tempered else 1.0
    curious, new, wide, longer = False, 0.0, 0.0, scaled
    if s.curious and not s.labels:
        curious, new, wide, longer = look(out, features, z, count, norm2, typical, scaled, metric)
    verdict = weigh(s, now, out, config, Record(f, size, y, factor, power, times), active, (new, wide))
    if curious:
        grow_old(out, features, z, count, verdict.fits, verdict.size, metric)
    scalars[layout.NEW] = age(scalars[layout.NEW], verdict.fits, SLOWLY)
    follow(s, out, dim, features, z, metric, count, y, norm2, typical, scaled, longer, now, keeps, moves)
    note(out, features, count if len(out.thetas) == dim else count - 1)
    if s.copying:
        for i in range(2 * FOLLOWERS):
            if weights[i] < 2.0 * layout.SHARE / active:
                take_over(out, dim, i, verdict.leader)
    if due:
        place = next_place(weights, active, scalars)
        if place >= 0:
            keep_mean(out, dim, place, mean)
    if s.labels and s.warmed:
        scalars[layout.TEMPERATURE] = 1.0 / min(1.0, scalars[layout.SPREAD])
    return verdict.believed


@compiled
def catch_up_all(state: Array, width: int, dim: int, members: int, scales: int, rates: int) -> None:
    """Count every round in which a feature was 0."""
    out = parts_of(state, width, dim, members, scales, rates)
    for j in range(width):
        catch_up(out, j, out.scalars[layout.SEEN])


@compiled
def learn(
    values: Array,
    indices: Array,
    starts: Array,
    dim: int,
    Y: Array,
    times: Array,
    standard: int,
    sample: Array,
    units: Array,
    states: Array,
    members: int,
    rate_count: int,
    numbers: Array,
    clock: Array,
    believed: Array,
    work: Array,
    places: Array,
) -> int:
    """Learn from rows of non-zeros; see `selftuning.learn`."""
    values = uncounted(values)
    indices = uncounted(indices)
    starts = uncounted(starts)
    Y = uncounted(Y)
    times = uncounted(times)
    sample = uncounted(sample)
    units = uncounted(units)
    states = uncounted(states)
    numbers = uncounted(numbers)
    clock = uncounted(clock)
    believed = uncounted(believed)
    work = uncounted(work)
    places = uncounted(places)
    rows, outputs = len(starts) - 1, len(states)
    scales = (len(numbers) - layout.SETTINGS - rate_count) // rate_count
    prior = numbers[layout.SETTINGS : layout.SETTINGS + scales * rate_count].reshape(scales, rate_count)
    config = Config(numbers, prior, numbers[layout.SETTINGS + scales * rate_count :])
    constant = numbers[layout.PENALISED] == 0.0
    width = dim + 1 if constant else dim
    most = len(places) // 2
    s, now = settings_of(numbers), scratch_of(work[3 * most + 2 * members :], members, scales)
    features, changed = places[:most], places[most:]
    z, ratios, metric = work[:most], work[most : 2 * most], work[2 * most : 3 * most]
    keeps, moves = work[3 * most : 3 * most + members], work[3 * most + members : 3 * most + 2 * members]
    for row in range(rows):
        if times[row] <= 0.0:
            believed[:, row] = 0.0
            continue
        count, events, norm2 = gather(
            values, indices, starts, row, standard, sample, units, features, z, changed, ratios
        )
        if constant:
            features[count], z[count] = dim, 1.0
            count += 1
            norm2 += 1.0
        for k in range(outputs):
            out = parts_of(states[k], width, dim, members, scales, rate_count)
            for a in range(events):
                rebase(out, changed[a], ratios[a])
            believed[k, row] = play(
                s, out, dim, features, z, count, norm2, Y[k, row], times[row], config, now, metric, keeps, moves
            )
        clock[0] += 1.0
    return rows

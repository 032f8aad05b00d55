"""The self-tuning learner of order 1 on sparse rows: the rounds of `selftuning`, at a cost of the non-zeros.

Two things cost all features: a snapshot, ever more seldom, and a leader that no follower is a copy of.
"""

from __future__ import annotations

from redescend.kernels.compiler import compiled, inlined, uncounted
from redescend.kernels.selftuning import layout
from redescend.kernels.selftuning.followers import within
from redescend.kernels.selftuning.layout import Config, Lengths, Record, Scratch, Settings, scratch_of, settings_of
from redescend.kernels.selftuning.likelihood import begin, paid_for, playable, weigh
from redescend.kernels.selftuning.mixture import next_place
from redescend.kernels.selftuning.noise import size_of
from redescend.kernels.selftuning.novelty import SLOWLY, age
from redescend.kernels.tabular import sparse_members as members
from redescend.kernels.tabular.dense import ROW_COUNT, TableOutcomes, TableState
from redescend.kernels.tabular.selftuning import TableConfig, rescaled, split_settings
from redescend.kernels.tabular.sparse import Buffers, SparseRows, gather
from redescend.kernels.tabular.sparse_members import Output, SparseRecord
from redescend.numeric import Array


@inlined
def rebase(out: Output, j: int, ratio: float) -> None:
    """Rewrite a feature in a new scale; the predictions of members stay the same."""
    count = len(out.kept)
    for i in range(count):
        for k in range(count):
            both = out.kept[i] * out.thetas[j, i] * out.kept[k] * out.thetas[j, k]
            out.products[i, k] += both * (ratio * ratio - 1.0)
    for i in range(count):
        out.thetas[j, i] = within(out.thetas[j, i] * ratio, layout.FARTHEST)
    out.squares[j] = rescaled(out.squares[j], ratio)


@inlined
def play(
    s: Settings,
    out: Output,
    rec: SparseRecord,
    y: float,
    sample_weight: float,
    config: Config,
    now: Scratch,
    steps: tuple[Array, Array],
) -> float:
    """Play one round; returns the weight of the record."""
    weights, scalars, norm2, dim = out.weights, out.scalars, rec.norm2, rec.dim
    keeps, moves = steps
    scalars[layout.ROUNDS] += 1.0
    if not playable(s, norm2, y):
        return 0.0
    factor, active = scalars[layout.TEMPERATURE], 0.0
    for i in range(len(weights)):
        active += 1.0 if weights[i] > 0.0 else 0.0
    if s.l2 > 0.0 and members.is_stale(out, dim):
        members.refresh(out, dim)
    p = members.predict(out, rec, now)
    due = scalars[layout.SEEN] + 1.0 >= scalars[layout.DUE]
    mean = members.mean_model(out, dim) if due else moves
    f = paid_for(s, p, y, factor, members.size2_of_mean(out) if s.l2 > 0.0 else 0.0)
    size = size_of(s.kind, s.labels, f, p, y)
    if not begin(s, norm2, f, size, len(out.cells), scalars):
        return 1.0
    typical, scaled = members.measure(out, rec)
    power = min(1.0, typical / norm2) if s.tempered else 1.0
    curious, new, wide, longer = False, 0.0, 0.0, scaled
    if s.curious and not s.labels:
        curious, new, wide, longer = members.look(out, rec, typical, scaled)
    verdict = weigh(s, now, out, config, Record(f, size, y, factor, power, sample_weight), active, (new, wide))
    if curious:
        members.grow_old(out, rec, verdict.fits, verdict.size)
    scalars[layout.NEW] = age(scalars[layout.NEW], verdict.fits, SLOWLY)
    lengths = Lengths(norm2, typical, scaled, longer, out.counters[members.KNOWN])
    members.follow(s, out, rec, y, lengths, now, keeps, moves)
    members.record_touched(out, rec.features, rec.length if len(out.thetas) == dim else rec.length - 1)
    if s.copying:
        for i in range(2 * layout.FOLLOWERS):
            if weights[i] < 2.0 * layout.SHARE / active:
                members.copy_leader(out, dim, i, verdict.leader)
    if due:
        place = next_place(weights, active, scalars)
        if place >= 0:
            members.take_snapshot(out, dim, place, mean)
    if s.labels and s.warmed:
        scalars[layout.TEMPERATURE] = 1.0 / min(1.0, scalars[layout.SPREAD])
    return verdict.believed


@compiled
def catch_up_all(state: Array, width: int, dim: int, count: int, scales: int, rates: int) -> None:
    """Count every round in which a feature was 0."""
    out = members.split_output(state, width, dim, count, scales, rates)
    for j in range(width):
        members.catch_up(out, j, out.scalars[layout.SEEN])


@compiled
def learn(rows: SparseRows, state: TableState, config: TableConfig, out: TableOutcomes, buffers: Buffers) -> int:
    """Learn from sparse rows; see `sparse.learn` and `selftuning.learn`."""
    rows, buffers = SparseRows(*uncounted(rows)), Buffers(*uncounted(buffers))
    models, _, progress, sample, stats, _, _ = uncounted(state)
    config, weights = TableConfig(*uncounted(config)), uncounted(out[0])
    settings, count, dim = split_settings(config.settings, config.rates), config.members, stats.shape[1]
    scales, constant = len(settings.prior), settings.settings[layout.PENALISED] == 0.0
    width = dim + 1 if constant else dim
    longest, work = len(buffers.z), buffers.work
    metric, keeps = work[:longest], work[longest : longest + count]
    moves = work[longest + count : longest + 2 * count]
    s, now = settings_of(settings.settings), scratch_of(work[longest + 2 * count :], count, scales)
    for row in range(len(rows.sample_weight)):
        if rows.sample_weight[row] <= 0.0:
            weights[:, row] = 0.0
            continue
        features, events, norm2 = gather(rows, row, config.method, sample, stats, buffers)
        if constant:
            buffers.features[features], buffers.z[features] = dim, 1.0
            features += 1
            norm2 += 1.0
        record = SparseRecord(buffers.features, buffers.z, features, norm2, metric, dim)
        for k in range(len(models)):
            model = members.split_output(models[k], width, dim, count, scales, config.rates)
            for a in range(events):
                rebase(model, buffers.changed[a], buffers.ratios[a])
            y, sample_weight = rows.Y[k, row], rows.sample_weight[row]
            weights[k, row] = play(s, model, record, y, sample_weight, settings, now, (keeps, moves))
        progress[ROW_COUNT] += 1.0
    return len(rows.sample_weight)

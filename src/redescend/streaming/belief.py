"""The belief of a stream's model, applied to encoded chunks."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from redescend.belief import Judgements, LabelBelief, ResidualBelief, Verdict, to_probability
from redescend.belief.deferred import COMPACT
from redescend.belief.suspects import HALF, SHARE
from redescend.engines.config import ModelConfig
from redescend.engines.labels import label_probabilities
from redescend.errors import DataError
from redescend.numeric import Array
from redescend.parameters import check
from redescend.state import require
from redescend.streaming.encoding.encoder import EncodedChunk
from redescend.streaming.encoding.schema import Schema
from redescend.streaming.rounds import Judged, Rounds

Belief: TypeAlias = ResidualBelief | LabelBelief

FREQUENT, MANY_TIMES, MOST_STUCK = 0.02, 3, 3
"""A value with at least the share FREQUENT of the records that are not stuck is usual. It is stuck only in runs that
are more than MANY_TIMES as long as all its others, and in at most MOST_STUCK runs."""


def make_belief(schema: Schema) -> Belief:
    """Make a new belief for the records of a stream.

    With one model per key, each key has its own noise scale, which may depend on the first `COMPACT` features. Keys
    share the shape of the noise, the share of outliers, and the belief about labels.
    """
    if schema.classifies:
        return LabelBelief(max(2, len(schema.labels)))
    return ResidualBelief(schema.dim if schema.by is None else min(schema.dim, COMPACT))


def add_class(belief: LabelBelief) -> LabelBelief:
    """The belief with one more class, which has learned from the same records.

    With more than two classes, every class is counted as one against the rest. So each record of two classes is counted
    a second time, with the other label and the opposite margin, before all models are fitted again.
    """
    larger, learned = LabelBelief(belief.classes + 1), belief.state()
    if belief.classes == 2:
        learned["counts"] += learned["counts"][:, ::-1, ::-1]
        learned["flips"] = larger.state()["flips"]
    larger.restore(learned)
    if belief.classes == 2:
        larger.learn_table(np.empty((0, 3)), np.empty(0, np.int64))
    return larger


def key_bytes(belief: Belief | None) -> int:
    """Bytes that the belief needs for another key."""
    return belief.key_bytes if isinstance(belief, ResidualBelief) else 0


def _select_inputs(belief: ResidualBelief, chunk: EncodedChunk) -> dict[str, Any]:
    """The features that a belief uses, and the indices of keys."""
    return {"X": chunk.X[:, : belief.dim], "keys": chunk.keys if chunk.names else None}


def restore_belief(schema: Schema, config: ModelConfig, state: Any, owner: str) -> Belief | None:
    """Restore the belief of a saved model; None if it has none, such as in older files."""
    if state is None:
        return None
    require(config.transform is None, owner, "a belief in spite of its transform")
    belief = make_belief(schema)
    belief.restore(state)
    return belief


def learn_chunk(belief: Belief, chunk: EncodedChunk, scores: Array) -> Judged:
    """Judge the records of a chunk by scores from before the update, and learn from them."""
    if isinstance(belief, ResidualBelief):
        return Judged(*belief.update(np.nan_to_num(scores[0]), chunk.targets, **_select_inputs(belief, chunk)))
    labels = chunk.targets.astype(np.int64)
    online = belief.update(_scores_by_record(scores), labels)
    return _judged_labels(online.clean_log_odds, online.suspect, scores, labels)


def judge_chunk(belief: Belief, chunk: EncodedChunk, scores: Array) -> Judged:
    """Judge the records of a chunk without learning from them; stuck sensors are not detected."""
    if isinstance(belief, LabelBelief):
        labels = chunk.targets.astype(np.int64)
        log_odds = belief.judge(_scores_by_record(scores), labels)
        return _judged_labels(log_odds, to_probability(log_odds) <= 0.5, scores, labels)
    predictions = np.nan_to_num(scores[0])
    records = _select_inputs(belief, chunk)
    log_odds = belief.judge(predictions, chunk.targets, **records)
    low, high = belief.predict_interval(predictions, **records)
    suspect = to_probability(log_odds) <= 0.5
    return Judged(log_odds, low, high, np.full(len(log_odds), np.nan), np.zeros(len(log_odds)), suspect)


def predict_labels(belief: Belief | None, scores: Array) -> Array:
    """The probability of every label to be the true one, a row each; calibrated by the belief, if there is one."""
    if isinstance(belief, LabelBelief):
        return np.ascontiguousarray(belief.predict_proba(_scores_by_record(scores)).T)
    return label_probabilities(scores)


def check_interval(belief: Belief | None, level: float) -> ResidualBelief:
    """Return the belief if it has intervals of this level, or raise."""
    if not isinstance(belief, ResidualBelief):
        raise DataError("Intervals need a model of numbers without a fixed transform.")
    check("predict_interval", "level", level, SHARE)
    return belief


def predict_chunk(belief: Belief | None, chunk: EncodedChunk, scores: Array, level: float) -> Judged:
    """Predict intervals of this level for the records of a chunk with unknown targets; the rest is NaN."""
    checked = check_interval(belief, level)
    ends = checked.predict_interval(np.nan_to_num(scores[0]), level=level, **_select_inputs(checked, chunk))
    unknown = np.full(len(chunk.X), np.nan)
    return Judged(unknown, *ends, unknown, unknown, np.zeros(len(chunk.X), bool))


def give_verdict(belief: Belief, rounds: Rounds) -> Verdict:
    """Compute the final verdict on rounds that the belief has learned from."""
    judged = rounds.judged
    if judged is None:
        raise DataError("The final verdict needs rounds of a model with a belief.")
    if isinstance(belief, ResidualBelief):
        stuck = np.where(are_usual_runs(rounds.targets, judged.stuck > HALF, rounds.keys), 0.0, judged.stuck)
        judged = judged._replace(stuck=stuck)
        return belief.judge_log(rounds.predictions, rounds.targets, Judgements(*judged), rounds.keys)
    if belief.classes > 2:
        return belief.judge_leads(judged.margin, np.ones(len(rounds), np.int64))
    labels = rounds.targets.astype(np.int64)
    return belief.judge_leads(np.where(labels, judged.margin, -judged.margin), labels)


def are_usual_runs(targets: Array, stuck: Array, keys: Array | None = None) -> Array:
    """Which records are in runs of equal targets that only seem to be stuck: of a value that is frequent without being
    stuck, such as an hour without rain, and not much longer than its other runs.

    >>> rain = np.concatenate([np.append(np.zeros(length), 1.0) for length in (9, 20, 7, 30, 12, 400, 25)])
    >>> found = are_usual_runs(rain, np.arange(len(rain)) >= 40)
    >>> int(np.count_nonzero(found[rain == 0.0])), bool(found[100:400].any())
    (66, False)
    """
    usual = np.zeros(len(targets), bool)
    if not stuck.any():
        return usual
    order = np.arange(len(targets)) if keys is None else np.argsort(keys, kind="stable")
    values, held = targets[order], stuck[order]
    new = np.diff(values, prepend=np.nan) != 0.0
    new[1:] |= False if keys is None else np.diff(keys[order]) != 0
    starts = np.flatnonzero(new)
    lengths, of = np.diff(starts, append=len(values)), values[starts]
    others = np.sort(values[~held])
    for value in np.unique(values[held]).tolist():
        frequent = np.searchsorted(others, value, "right") - np.searchsorted(others, value, "left")
        longest = np.sort(lengths[of == value])[::-1][: MOST_STUCK + 1]
        if frequent < FREQUENT * len(others) or len(longest) < 2:
            continue
        gaps = np.flatnonzero(longest[:-1] > MANY_TIMES * longest[1:])
        most = longest[gaps[-1] + 1] if len(gaps) else longest[0]
        usual[order] |= held & (values == value) & (np.repeat(lengths, lengths) <= most)
    return usual


def _scores_by_record(scores: Array) -> Array:
    return np.ascontiguousarray(np.nan_to_num(scores).T)


def _judged_labels(log_odds: Array, suspect: Array, scores: Array, labels: Array) -> Judged:
    missing = np.full(len(labels), np.nan)
    if len(scores) == 1:
        margins = np.where(labels, scores[0], -scores[0])
        return Judged(log_odds, missing, missing, margins, np.zeros(len(labels)), suspect)
    records = np.arange(len(labels))
    given, others = scores[labels, records], scores.copy()
    others[labels, records] = -np.inf
    return Judged(log_odds, missing, missing, given - others.max(axis=0), np.zeros(len(labels)), suspect)

r"""A bound of the self-tuning learner, in the log-losses of its members; and a ledger that checks it on a game.

Member i of the n active ones gives the record of round t the likelihood L_t(i), to the power min(1, w/leverage). The
weights w_t predict it with Z_t = Σ w_t(i)·L_t(i), Bayes' rule makes w_t(i)·L_t(i)/Z_t of them, and the members share
α_t = 1/(1000 + t) of the sum. The proof is in docs/selftuning.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, log1p

import numpy as np

from redescend.errors import DataError
from redescend.game import Stream
from redescend.kernels.selftuning import layout
from redescend.kernels.selftuning.members import SMALL_SHARE, part_of_share
from redescend.kernels.selftuning.noise import PATIENCE
from redescend.learners.selftuning import SelfTuning
from redescend.numeric import Array
from redescend.parameters import AT_LEAST_ONE, Interval, check, check_instance


def tracking(rounds: int, members: int, switches: int = 0, prior: float = 0.1) -> float:
    r"""Bound how much the learner's log-loss Σ −ln Z_t exceeds that of any sequence of members.

    ln(1/prior) + S·ln(10·n·(999 + T)) + ln((999 + T)/1000): the shares decay, so the cost of a sequence without
    switches grows only with ln T. It holds until the posterior restarts; then the next sequence begins.

    Parameters
    ----------
    rounds : int
        T, the number of rounds since the learner began with the first records.
    members : int
        n, the number of active members.
    switches : int, default 0
        S, how often the sequence changes its member. The factor 10 is needed only for switches to the origin or to a
        tracker.
    prior : float, default 0.1
        The weight of the sequence's first member before its first round.

    Returns
    -------
    float
        The bound in nats.

    Examples
    --------
    >>> round(tracking(1000, 7), 2), round(tracking(1000, 7, switches=2), 2)
    (3.0, 26.69)
    """
    rounds = check("tracking", "rounds", rounds, AT_LEAST_ONE)
    members = check("tracking", "members", members, AT_LEAST_ONE)
    switches = check("tracking", "switches", switches, Interval(0, max(rounds - 1, 0), whole=True))
    prior = check("tracking", "prior", prior, Interval(0, 1, "right"))
    horizon = PATIENCE - 1.0 + rounds
    return -log(prior) + switches * log(members * horizon / SMALL_SHARE) + log(horizon / PATIENCE)


@dataclass(frozen=True, eq=False)
class Ledger:
    """A game of the self-tuning learner in log-losses; one row for each round that it learned from.

    Attributes
    ----------
    rows : array
        The rounds of the stream.
    lags : array of shape (rounds, members)
        ln Z_t − ln L_t(i): by how much a member's log-loss exceeds the learner's; inf for members that are not active.
    prior : array of shape (rounds, members)
        −ln of the weights before each round; inf for members that are not active.
    age : array
        t, the number of rounds since the learner began again.
    begins : array of bool
        Where the ledger begins again: after the first records, and after the posterior restarted or returned.
    replaced : array of bool
        Whether the snapshot was replaced after the round.
    parts : array of shape (members,)
        What each member gets of the share of a round.

    Examples
    --------
    >>> import redescend as rd
    >>> ledger = follow(rd.SelfTuning(2, loss=rd.losses.Logistic()), rd.streams.svm(50, seed=0))
    >>> ledger.tracks, len(ledger.lags) == len(ledger.rows)
    (True, True)
    """

    rows: Array
    lags: Array
    prior: Array
    age: Array
    begins: Array
    replaced: Array
    parts: Array

    @property
    def margin(self) -> float:
        """The least of Σ lags + its tracking bound over all sequences of members, by dynamic programming; at least 0.

        Each part between two beginnings has a sequence of its own; the least of the parts is returned.
        """
        margin, best = np.inf, np.empty(0)
        for t in range(len(self.rows)):
            if self.begins[t]:
                margin = min(margin, best.min(initial=np.inf))
                best = self.prior[t] + self.lags[t]
                continue
            share = 1.0 / (PATIENCE + self.age[t - 1])
            active = np.isfinite(self.prior[t])
            stay, switch = best - log1p(-share), best.min() + log(active.sum() / share) - np.log(self.parts)
            if self.replaced[t - 1]:
                stay[layout.SNAPSHOT] = np.inf
            # A snapshot that is new was given its share before the others were scaled down.
            added = log1p(share / active.sum()) if (active & ~np.isfinite(self.prior[t - 1])).any() else 0.0
            best = np.where(active, np.minimum(stay, switch) + added + self.lags[t], np.inf)
        return float(min(margin, best.min(initial=np.inf)))

    @property
    def tracks(self) -> bool:
        """Whether Σ −ln Z_t is at most that of every sequence of members and its bound."""
        return bool(self.margin >= -1e-9 * max(1, len(self.rows)))


def follow(learner: SelfTuning, stream: Stream) -> Ledger:
    """Play a stream round by round with a self-tuning learner, and record the log-losses of its members.

    Parameters
    ----------
    learner : SelfTuning
        A learner that has not played yet.
    stream : Stream
        The stream to play.

    Returns
    -------
    Ledger
        The log-losses, with which the bound can be checked.

    Examples
    --------
    >>> import redescend as rd
    >>> stream = rd.adversaries.UniformResponse(0, 1).corrupt(rd.streams.ridge(200, seed=0, dim=3), k=20, seed=1)
    >>> follow(rd.SelfTuning(3, loss=rd.losses.Squared()), stream).tracks
    True
    """
    check_instance("follow", "learner", learner, SelfTuning, "a SelfTuning learner")
    check_instance("follow", "stream", stream, Stream, "a Stream")
    if learner.rounds:
        raise DataError(f"follow needs a fresh learner. Got one that has played {learner.rounds} rounds instead.")
    state, scalar = learner.kernel_state, learner.kernel_state.scalar
    starts = layout.FEW if learner.loss.margin else len(state.ring)
    pages: list[tuple[int, Array, Array, float, bool, bool]] = []
    begins = True
    for row in range(len(stream)):
        weight, seen, age = state.weight.copy(), scalar[layout.SEEN], scalar[layout.AGE]
        learner.update(stream.X[row], float(stream.y[row]))
        last = int(scalar[layout.LAST])
        if scalar[layout.SEEN] == seen:
            continue
        if (last <= starts and last & (last - 1) == 0) or scalar[layout.AGE] != age + 1:
            begins = True
            continue
        prior, posterior = weight / weight.sum(), state.played.copy()
        # The played share of a snapshot that was just replaced is 0; before, it had the rest.
        replaced = bool(prior[layout.SNAPSHOT] > 0.0 and posterior[layout.SNAPSHOT] == 0.0)
        if replaced:
            posterior[layout.SNAPSHOT] = max(1.0 - posterior.sum(), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            lags = np.where(prior > 0.0, np.log(prior) - np.log(posterior), np.inf)
            pages.append((row, lags, -np.log(prior), float(seen + 1), begins, replaced))
        begins = False
    shape, part = (len(pages), layout.MEMBERS), part_of_share.py_func  # type: ignore[attr-defined]
    loss = layout.Loss(layout.LABELS if learner.loss.margin else layout.SQUARED, 0.0)
    return Ledger(
        rows=np.array([page[0] for page in pages], dtype=np.intp),
        lags=np.array([page[1] for page in pages]).reshape(shape),
        prior=np.array([page[2] for page in pages]).reshape(shape),
        age=np.array([page[3] for page in pages]),
        begins=np.array([page[4] for page in pages], dtype=bool),
        replaced=np.array([page[5] for page in pages], dtype=bool),
        parts=np.array([part(loss, member) for member in range(layout.MEMBERS)]),
    )

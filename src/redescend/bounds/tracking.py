r"""Bounds of the self-tuning learner, in its own log-losses; and a ledger that checks them on a game.

Member i of the n active ones has likelihood L_t(i) in round t, capped as the learner caps it, e_t = min(1, N/‖x_t‖²),
and g_t(i) = −e_t·ln L_t(i). The weights predict with Z_t = Σ w_t(i)·e^(−g_t(i)). The proofs are in docs/selftuning.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, log1p, sqrt

import numpy as np

from redescend.errors import DataError
from redescend.game import Stream
from redescend.kernels.selftuning import layout
from redescend.kernels.selftuning.mixture import LUCK
from redescend.kernels.selftuning.noise import densities
from redescend.kernels.selftuning.novelty import look
from redescend.learners.selftuning import DRIFT, LABEL_DRIFT, SelfTuning
from redescend.losses import likelihood, linear
from redescend.numeric import Array
from redescend.parameters import AT_LEAST_ONE, COUNT, POSITIVE, Interval, check, check_instance

STAY = -log1p(-layout.SHARE)
"""What a round without a switch costs."""


def tracking(rounds: int, members: int, switches: int = 0) -> float:
    r"""Bound how much the learner's log-loss Σ −ln Z_t exceeds that of any sequence of members.

    ln n + S·ln(n/α) + (T − 1 − S)·ln(1/(1 − α)), with α the share of 10⁻³.

    Parameters
    ----------
    rounds : int
        T, the number of rounds.
    members : int
        n, the number of active members.
    switches : int, default 0
        S, how often the sequence changes its member.

    Returns
    -------
    float
        The bound in nats.

    Examples
    --------
    >>> round(tracking(1000, 7), 2), round(tracking(1000, 7, switches=2), 2)
    (2.95, 20.65)
    """
    rounds = check("tracking", "rounds", rounds, AT_LEAST_ONE)
    members = check("tracking", "members", members, AT_LEAST_ONE)
    switches = check("tracking", "switches", switches, Interval(0, max(rounds - 1, 0), whole=True))
    return log(members) + switches * log(members / layout.SHARE) + (rounds - 1 - switches) * STAY


def noise(rounds: int, prior: float, labels: bool = False, moves: int = 0) -> float:
    r"""Bound how much the log-loss of the noise posterior exceeds that of one cell, a LEARN loss with fixed a and b.

    ln(1/prior) + T·ln(1/(1 − β)), and ln(1 + β) for each move of the window of scales; β is 10⁻⁴, for labels 10⁻⁵.

    Parameters
    ----------
    rounds : int
        T, the number of rounds.
    prior : float
        Prior probability of the cell.
    labels : bool, default False
        Whether targets are labels.
    moves : int, default 0
        Number of moves of the window.

    Returns
    -------
    float
        A difference of log-losses.

    Examples
    --------
    >>> round(noise(1000, prior=1 / 48), 2)
    3.97
    """
    rounds, moves = check("noise", "rounds", rounds, COUNT), check("noise", "moves", moves, COUNT)
    share = LABEL_DRIFT if labels else DRIFT
    return -log(check("noise", "prior", prior, Interval(0, 1, "right"))) - rounds * log1p(-share) + moves * log1p(share)


def outlier_price(residual: float = 0.0, narrowest: float = 1.0, widest: float = 1.0, labels: bool = False) -> float:
    r"""Bound what one corrupted round adds to the tracking bound of the others.

    ln 99 for labels. For residuals ln(200·max(|r|, widest)/narrowest): logarithmic in the size of the outlier.

    Parameters
    ----------
    residual : float, default 0.0
        r, the residual of the outlier.
    narrowest, widest : float, default 1.0
        The smallest and largest scale with a positive weight.
    labels : bool, default False
        Whether targets are labels.

    Returns
    -------
    float
        The bound.

    Examples
    --------
    >>> round(outlier_price(labels=True), 2), round(outlier_price(residual=1e6), 2)
    (4.6, 19.11)
    """
    if labels:
        return log(99.0)
    residual = check("outlier_price", "residual", residual, Interval(-inf, inf, "neither"))
    narrowest = check("outlier_price", "narrowest", narrowest, POSITIVE)
    widest = check("outlier_price", "widest", widest, Interval(narrowest, inf, "left"))
    # Every record is at least .01·¼/max(|r|, s) likely, and none more than .99·½/s + .01·¼/s, at any s.
    return log(200.0 * max(abs(residual), widest) / narrowest)


@dataclass(frozen=True, eq=False)
class Ledger:
    """A game of the self-tuning learner, in its log-losses; one row for each round that it learned from.

    Attributes
    ----------
    rows : array
        The rounds of the stream.
    members : array of shape (rounds, members)
        g_t(i); inf for members that are not active.
    played : array
        −ln Z_t.
    active : array
        Number of active members.
    noise : array
        −ln of the density of the record under the noise posterior; 0 where the posterior learned nothing.
    cells : array of shape (rounds, scales, rates)
        The same of every cell that stayed in the window, below its top; inf for the others.
    moves : int
        Number of moves of the window.
    price : array
        `outlier_price` of every round.
    mixed : array or None
        For the logistic loss: the loss of p̂ = logit Σ w·σ(p_i), the mixture of the members' predictions.
    prior : array
        Prior probabilities of the cells.
    labels : bool
        Whether targets are labels.

    Examples
    --------
    >>> import redescend as rd
    >>> ledger = follow(rd.SelfTuning(2, loss=rd.losses.Logistic()), rd.streams.svm(50, seed=0))
    >>> ledger.tracks, ledger.members.shape[0] == len(ledger.rows)
    (True, True)
    """

    rows: Array
    members: Array
    played: Array
    active: Array
    noise: Array
    cells: Array
    moves: int
    price: Array
    mixed: Array | None
    prior: Array
    labels: bool

    @property
    def best_sequence(self) -> float:
        """The least of Σ g_t(i_t) + its tracking bound over all sequences of members, by dynamic programming."""
        if not len(self.rows):
            return 0.0
        best = self.members[0] + log(self.active[0])
        for t in range(1, len(self.members)):
            # A new member was given its share before the others were scaled down.
            room = log1p(layout.SHARE / self.active[t]) if self.active[t] > self.active[t - 1] else 0.0
            switch = best.min() + log(self.active[t] / layout.SHARE)
            best = np.minimum(best + STAY, switch) + room + self.members[t]
        return float(best.min())

    @property
    def tracks(self) -> bool:
        """Whether Σ −ln Z_t is at most `best_sequence`."""
        return bool(self.played.sum() <= self.best_sequence + 1e-9 * np.abs(self.played).sum() + 1e-9)

    @property
    def knows_the_noise(self) -> bool:
        """Whether the noise posterior is within its bound of every cell that stayed in the window."""
        rounds = int(np.count_nonzero(self.noise))
        for place in np.argwhere(np.isfinite(self.cells).all(axis=0)):
            bound = noise(rounds, float(self.prior[tuple(place)]), self.labels, self.moves)
            if self.noise.sum() > self.cells[:, place[0], place[1]].sum() + bound + 1e-9 * np.abs(self.noise).sum():
                return False
        return True

    @property
    def outliers_cost_no_more(self) -> bool:
        """Whether in every round no active member is farther from −ln Z_t than `outlier_price`."""
        cost = np.where(np.isfinite(self.members), self.members, -np.inf).max(axis=1, initial=-np.inf) - self.played
        return bool((cost <= self.price + 1e-9).all())


def follow(learner: SelfTuning, stream: Stream) -> Ledger:
    """Play a stream round by round with a self-tuning learner, and record its log-losses.

    It takes about a millisecond a round.

    Parameters
    ----------
    learner : SelfTuning
        A learner that has not played yet.
    stream : Stream
        The stream to play.

    Returns
    -------
    Ledger
        The log-losses, with which the bounds can be checked.

    Examples
    --------
    >>> import redescend as rd
    >>> stream = rd.adversaries.UniformResponse(0, 1).corrupt(rd.streams.ridge(200, seed=0, dim=3), k=20, seed=1)
    >>> ledger = follow(rd.SelfTuning(3, loss=rd.losses.Squared()), stream)
    >>> ledger.tracks, ledger.knows_the_noise, ledger.outliers_cost_no_more
    (True, True, True)
    """
    check_instance("follow", "learner", learner, SelfTuning, "a SelfTuning learner")
    check_instance("follow", "stream", stream, Stream, "a Stream")
    if learner.rounds:
        raise DataError(f"follow needs a fresh learner. Got one that has played {learner.rounds} rounds instead.")
    prior = learner.kernel_config.prior
    pages: list[_Page] = []
    rows = []
    for row in range(len(stream)):
        page = _Page(learner, stream.X[row].astype(np.float64), float(stream.y[row]))
        learner.update(stream.X[row], float(stream.y[row]))
        if learner.kernel_state.scalars[layout.SEEN] > page.scalars[layout.SEEN]:
            page.close(learner)
            pages.append(page)
            rows.append(row)
    lowest, cells = np.array([page.lowest for page in pages]), [page.cells for page in pages]
    moves = int(np.count_nonzero(np.diff(lowest)))
    mixed = np.array([page.mixed for page in pages]) if learner.loss.kind == linear.LOGISTIC else None
    return Ledger(
        rows=np.array(rows, dtype=np.intp),
        members=np.array([page.members for page in pages]).reshape(len(pages), len(learner.kernel_state.weights)),
        played=np.array([page.played for page in pages]),
        active=np.array([page.active for page in pages]),
        noise=np.array([page.noise for page in pages]),
        cells=_at_one_scale(np.array(cells).reshape(len(pages), *prior.shape), lowest, learner.loss.margin),
        moves=moves,
        price=np.array([page.price for page in pages]),
        mixed=mixed,
        prior=prior,
        labels=learner.loss.margin,
    )


def _at_one_scale(out: Array, lowest: Array, labels: bool) -> Array:
    """Shift the cells so that each place is one scale in all rounds; inf where it was out of the window or its top."""
    if labels or not len(out):
        return out
    scales = out.shape[1]
    shifts = np.rint(np.log2(lowest / lowest[0])).astype(int)
    for t, shift in enumerate(shifts):
        there = np.arange(scales) - shift
        seen = (there >= 0) & (there < scales - 1)
        out[t] = np.where(seen[:, None], out[t, np.clip(there, 0, scales - 1)], np.inf)
    return out


class _Page:
    """One round: the state of the learner before it, and how likely that state made the record."""

    def __init__(self, learner: SelfTuning, x: Array, y: float) -> None:
        before = layout.State(*(array.copy() for array in learner.kernel_state))
        self.loss, self.x, self.y = learner.loss, x, y
        self.weights, self.thetas, self.scalars = before.weights, before.thetas, before.scalars
        self.masses, self.news = before.cells, before.news
        self.active = int(np.count_nonzero(self.weights))
        self.rates = np.array(learner.kernel_config.rates)

    def close(self, learner: SelfTuning) -> None:
        """Compute the log-losses after the learner has seen the record, as the first one fixes the window of scales."""
        loss, after = self.loss, learner.kernel_state
        scales = len(self.masses)
        labels, temperature = loss.margin, self.scalars[layout.TEMPERATURE]
        # The window that judged the record; it may have moved since.
        self.lowest = self.scalars[layout.LOWEST]
        if self.lowest == 0.0:
            size = self._sizes(float(self.weights @ self.thetas @ self.x), 1.0)[1]
            self.lowest = max(size, 1e-260) * 2.0 ** (-scales // 2)
        self.scale = self.lowest * 2.0 ** np.arange(scales)
        clean, bad = self.masses @ (1.0 - self.rates), self.masses @ self.rates
        lengths = after.norms[: int(min(after.scalars[layout.SEEN], layout.NORMS))]
        typical = np.quantile(lengths, 0.5, method="inverted_cdf")
        self.new, self.wide = self._what_is_new(learner, float(typical))
        alive = np.flatnonzero(self.weights)
        logs = np.full(len(self.weights), -np.inf)
        for i in alive:
            paid, size = self._sizes(self.thetas[i] @ self.x, temperature, self.thetas[i])
            if labels:
                rate = bad.sum()
                logs[i] = np.log(rate + (1.0 - 2.0 * rate) * np.exp(-paid))
            else:
                logs[i] = self._log_likelihood(paid, size, clean, bad)
        leader = int(np.argmax(self.weights >= (1.0 - 1e-9) * self.weights.max()))
        power = min(1.0, typical / (self.x @ self.x))
        capped = np.minimum(logs, logs[leader] + np.log(LUCK))
        self.members = np.where(self.weights > 0.0, -power * capped, np.inf)
        self.played = -_log_sum(np.log(self.weights[alive]) - self.members[alive])
        heavy = self.scale[clean + bad >= learner.kernel_config.settings[layout.SHARE_CELLS]]
        residual = max((self._sizes(self.thetas[i] @ self.x, 1.0, self.thetas[i])[1] for i in alive), key=abs)
        band = loss.setting if loss.kind == linear.EPSILON_INSENSITIVE else 0.0
        self.price = power * outlier_price(residual, heavy.min() + band, heavy.max() + band, labels)
        mean = self.weights @ self.thetas
        by = self.thetas[leader] if not labels else mean
        f, size = self._sizes(float(by @ self.x), 1.0, by)
        self.cells = np.array([self._cell(i, f, size) for i in range(scales)])
        self.noise = -_log_sum(np.log(self.masses).ravel() - self.cells.ravel()) if labels or f > 0.0 else 0.0
        if not self.noise:
            self.cells = np.zeros_like(self.cells)
        if loss.kind == linear.LOGISTIC:
            chance = self.weights @ likelihood.sigmoid(temperature * (self.thetas @ self.x))
            self.mixed = -np.log(chance if self.y > 0 else 1.0 - chance)

    def _what_is_new(self, learner: SelfTuning, typical: float) -> tuple[float, float]:
        """The share of the record that is new, and how wide residuals with that are."""
        if self.loss.margin or not learner.kernel_config.settings[layout.CURIOUS]:
            return 0.0, 0.0
        after, norm2 = learner.kernel_state, float(self.x @ self.x)
        scale = max(typical, norm2) * np.maximum(after.squares, layout.RESOLUTION)
        metric = np.where(after.counts >= layout.READY, 1.0 / scale, 0.0)
        new, wide, _ = look(self.x.reshape(1, -1), 0, norm2, typical, 0.0, self.news, self.scalars, metric)
        return new, wide

    def _sizes(self, p: float, temperature: float, theta: Array | None = None) -> tuple[float, float]:
        """What is paid for a prediction, and what the densities look at."""
        loss, long = self.loss, 0.0 if theta is None else float(theta @ theta)
        paid: float = float(loss.of_prediction(temperature * p, self.y)) + 0.5 * loss.l2 * temperature**2 * long
        if loss.margin:
            return paid, float(self.y * p)
        return paid, sqrt(paid) if loss.kind == linear.SQUARED else float(abs(p - self.y))

    def _densities(self, i: int, f: float, size: float) -> tuple[float, float]:
        # The top scale stands for all that are larger.
        top = i == len(self.scale) - 1 and not self.loss.margin
        s = max(self.scale[i], size) if top else self.scale[i]
        return densities(self.loss.kind, self.loss.setting, f, size, s, 1.0, self.new, self.wide)

    def _log_likelihood(self, f: float, size: float, clean: Array, bad: Array) -> float:
        share, total = LABEL_DRIFT if self.loss.margin else DRIFT, 0.0
        kind, c = self.loss.kind, self.loss.setting
        for i in np.flatnonzero(clean + bad >= share):
            q, u = self._densities(int(i), f, size)
            total += clean[i] * likelihood.member_density(kind, c, f, self.scale[i], 1.0, q) + bad[i] * u
        return float(np.log(total))

    def _cell(self, i: int, f: float, size: float) -> Array:
        q, u = self._densities(i, f, size)
        with np.errstate(divide="ignore"):
            return -np.log((1.0 - self.rates) * q + self.rates * u)


def _log_sum(logs: Array) -> float:
    top = logs.max()
    return float(top + np.log(np.exp(logs - top).sum()))

"""What an estimator says in the end of the rows of its last call."""

from __future__ import annotations

import numpy as np

from redescend.belief import q_values, select_suspects, to_probability
from redescend.numeric import Array
from redescend.sklearn.judging import RowBeliefs
from redescend.sklearn.stateful import StatefulEstimator


class JudgingEstimator(StatefulEstimator):
    """An estimator with a final verdict on the rows of the last `fit` or `partial_fit`."""

    _beliefs: RowBeliefs | None

    @property
    def clean_probability_(self) -> Array:
        """For each row of the last call, the probability that it was clean, by all that is known now.

        NaN for rows with a sample weight of 0. Only without a transform.
        """
        return np.where(np.isnan(self._final_log_odds()), np.nan, to_probability(self._final_log_odds()))

    @property
    def q_value_(self) -> Array:
        """For each row of the last call, the estimated share of false alarms in the list that ends with it."""
        probability = self.clean_probability_
        out, known = np.full(len(probability), np.nan), ~np.isnan(probability)
        out[known] = q_values(probability[known])
        return out

    @property
    def suspects_(self) -> Array:
        """The rows of the last call that are suspects: `suspects` with a tenth of false alarms."""
        return self.suspects()

    def suspects(self, fdr: float = 0.1) -> Array:
        """List the rows of the last call that are probably wrong.

        Parameters
        ----------
        fdr : float
            The estimated share of false alarms in the list, between 0 and 1.

        Returns
        -------
        indices : array of int
            The largest list with at most this share, the least likely clean first; `q_value_` has the share of each.

        Examples
        --------
        >>> from redescend.sklearn import RedescendingRegressor
        >>> X = np.random.default_rng(0).normal(size=(300, 2))
        >>> y = X @ [1.0, 2.0] + 0.1 * np.random.default_rng(1).normal(size=300)
        >>> y[[50, 150]] += 9.0
        >>> np.sort(RedescendingRegressor().fit(X, y).suspects(fdr=0.1))
        array([ 50, 150])
        """
        return select_suspects(np.nan_to_num(self.clean_probability_, nan=1.0), fdr)

    def _final_log_odds(self) -> Array:
        self._fitted()
        if self._beliefs is None:
            raise AttributeError(
                "A model with a fixed transform does not say which rows are clean; see inlier_weight_."
            )
        return self._beliefs.clean_log_odds

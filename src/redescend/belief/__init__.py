"""Belief: how probable it is that a record is clean, which records are suspects, and where clean targets lie."""

from redescend.belief.labels import LabelBelief, LabelJudgements
from redescend.belief.residuals import ResidualBelief
from redescend.belief.suspects import q_values, select_suspects, to_probability
from redescend.belief.verdicts import Judgements, Verdict

__all__ = [
    "Judgements",
    "LabelBelief",
    "LabelJudgements",
    "ResidualBelief",
    "Verdict",
    "q_values",
    "select_suspects",
    "to_probability",
]

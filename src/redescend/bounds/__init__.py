r"""The theory as code: constants, theorems, and certificates of single games.

>>> import redescend as rd
>>> stream = rd.adversaries.UniformResponse(0, 1).corrupt(rd.streams.ridge(500, seed=0, dim=3), k=50, seed=1)
>>> learner = rd.Learn(3, loss=rd.losses.Squared(l2=0.1), a=1.0, b=1.0, step=rd.steps.Horizon(500))
>>> trace = rd.play(learner, stream, keep_actions=True)
>>> setting, certificate = rd.bounds.estimate(trace, stream, learner), rd.bounds.certify(trace, stream, learner)
>>> certificate.measured < certificate.value < rd.bounds.clean_dynamic(setting, a=1.0, b=1.0, sharp=True).value
True
"""

from redescend.bounds.certificate import Certificate, certify
from redescend.bounds.paid import PaidLoss, forecast, paid_loss
from redescend.bounds.setting import Constants, Setting, constants, estimate
from redescend.bounds.theorems import (
    Bound,
    clean_dynamic,
    clean_dynamic_unbounded,
    expert,
    invex_dynamic,
    normalised,
    top_k,
)
from redescend.bounds.tracking import Ledger, follow, tracking

__all__ = [
    "Bound",
    "Certificate",
    "Constants",
    "Ledger",
    "PaidLoss",
    "Setting",
    "certify",
    "clean_dynamic",
    "clean_dynamic_unbounded",
    "constants",
    "estimate",
    "expert",
    "follow",
    "forecast",
    "invex_dynamic",
    "normalised",
    "paid_loss",
    "top_k",
    "tracking",
]

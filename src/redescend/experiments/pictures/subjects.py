"""What the pictures are about: the two problems, their titles, and the paper's constants for them."""

from __future__ import annotations

from redescend.experiments import problems

TITLES = {"ridge": "Online ridge regression", "svm": "Online support vector machine"}
PROBLEMS = {"ridge": problems.ridge(), "svm": problems.svm()}

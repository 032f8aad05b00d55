"""Errors of usage: one sentence that says what is wrong, what was given, and what is possible."""

import pytest

from tests.cli.commands import run

FIT = ("fit", "t.csv", "--target", "y")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((*FIT, "--order", "7"), "--order must be one of auto, 1, 2. Got '7'."),
        ((*FIT, "--task", "guess"), "--task must be one of auto, regression, classification. Got 'guess'."),
        ((*FIT, "--top", "ten"), "--top must be a whole number. Got 'ten'."),
        ((*FIT, "--top", "-1"), "--top must be at least 0. Got -1."),
        ((*FIT, "--fdr", "5%"), "--fdr must be a number. Got '5%'."),
        ((*FIT, "--fdr", "3"), "--fdr must be at most 1. Got 3."),
        (("score", "m", "t.csv", "--threshold", "3"), "--threshold must be at most 1. Got 3."),
        ((*FIT, "--model"), "--model needs a value."),
        ((*FIT, "--quiet=yes"), "--quiet takes no value."),
        ((*FIT, "--quarantin", "r"), "redescend fit has no option --quarantin; did you mean --quarantine?"),
        ((*FIT, "--zzz"), "redescend fit has no option --zzz; see redescend fit --help."),
        (("fit", "t.csv"), "--target is missing; see redescend fit --help."),
        (("predict", "m"), "SOURCE is missing; see redescend predict --help."),
        (("inspect", "m", "n"), "There are too many arguments: n is not expected; see redescend inspect --help."),
        (("fitt", "t.csv"), "There is no command 'fitt'; did you mean 'fit'?"),
        (("zzz",), "There is no command 'zzz'; see redescend --help."),
    ],
)
def test_wrong_usage_is_one_sentence(arguments, sentence):
    done = run(*arguments, code=2)
    assert done.stderr == f"{sentence}\n"
    assert done.stdout == ""


def test_no_arguments_show_the_help():
    assert "Usage: redescend" in "".join(run(code=2).output)

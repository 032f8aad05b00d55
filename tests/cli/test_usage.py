"""Errors of usage: one sentence that says what is wrong, what was given, and what is possible."""

import pytest

from tests.cli.commands import refused, run

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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("predict", "m", "t.csv", "--interval", "1"), "--interval must be a number between 0 and 1. Got 1.0 instead."),
        (("predict", "m", "t.csv", "--out", "nowhere/p.csv"), "'nowhere/p.csv' cannot be written because"),
        (("audit", "t.csv", "--heat-map", "map.png"), "'map.png' cannot be written: a heat map is an SVG file,"),
        (("serve", "gone.json", "--data", "data"), "There is no file gone.json; name a model file, or a .json file"),
        (("serve", "--data", "data", "--host", "300.1.1.1", "--token", "t"), "(there is no such address)"),
        ((*FIT, "--schema", "gone.toml"), "There is no file gone.toml; write one with redescend schema"),
        ((*FIT, "--schema", "types.toml"), "'types.toml' has no table [columns]; write a schema with"),
        ((*FIT, "--loss", "hinge"), "'pinball' for regression. Got Hinge instead."),
        ((*FIT, "--loss", "pinball:3"), "--loss pinball:3: 'quantile' must be a number between 0 and 1. Got 3.0"),
        ((*FIT, "--transform", "huber:-1"), "'c' must be a number from 1e-100 to 1e+100. Got -1.0"),
        ((*FIT, "--transform", "huber:1", "--trees"), "Trees (--trees) cannot be combined with a transform."),
    ],
)
def test_mistakes_are_named_as_on_the_command_line(in_a_folder, arguments, words):
    lines = ["x,y", *(f"{x},{x % 7 + 0.5}" for x in range(200))]
    (in_a_folder / "t.csv").write_text("\n".join(lines) + "\n")
    (in_a_folder / "types.toml").write_text('x = "number"\n')
    if arguments[0] == "predict":
        run(*FIT, "--model", "m", "--quiet", "--features", "x")
    if arguments[0] == "serve":
        pytest.importorskip("orjson")
    assert words in refused(*arguments)


@pytest.mark.parametrize("value", ["nan", "-NaN"])
def test_no_number_is_between_others(in_a_folder, value):
    assert run(*FIT, f"--fdr={value}", code=2).stderr.startswith("--fdr must be a number")


def test_defaults_in_a_file_may_be_one_name_and_are_named_if_they_are_wrong(in_a_folder):
    lines = ["x,z,y", *(f"{x},{x % 5},{x % 7 + 0.5}" for x in range(200))]
    (in_a_folder / "t.csv").write_text("\n".join(lines) + "\n")
    (in_a_folder / "redescend.toml").write_text('target = "y"\n[fit]\nignore = "x"\n')
    said = run("fit", "t.csv").stderr
    assert "'z': number" in said
    assert "'x': number" not in said
    (in_a_folder / "redescend.toml").write_text('target = "y"\n[fit]\norder = 7\n')
    # Typer before 0.29 takes values in a file for texts.
    sentence = refused("fit", "t.csv").replace("'7'", "7")
    assert sentence == "--order in redescend.toml must be one of auto, 1, 2. Got 7."

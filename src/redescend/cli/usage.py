"""Errors of the command line, such as an unknown option or a value of the wrong type, as one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from redescend.cli.console import log
from redescend.cli.exit_codes import Code
from redescend.cli.options import DEFAULTS
from redescend.errors import quote

UsageError: Any = typer.BadParameter.__mro__[1]

RULES = {
    r"Input should be a valid integer.*|.* is not a valid int(?:eger)?(?: range)?\.?": "must be a whole number",
    r"Input should be a valid number.*|.* is not a valid float(?: range)?\.?": "must be a number",
    r"Input should be greater than or equal to (\S+)": r"must be at least \1",
    r"Input should be less than or equal to (\S+)": r"must be at most \1",
    r"(?:Value error, )?.* is not one of (.*?)\.?": r"must be one of \1",
}
"""What Typer says of invalid values, and what is said instead."""

RANGE = r"(?P<value>\S+) is not in the range (?:(?P<low>\S+)<=x|x>=(?P<least>\S+?)|x)(?:<=(?P<high>\S+?))?\.?"
"""What Typer before 0.29 says of a number that is out of range."""

OTHERS = {
    r"Option '(\S+)' requires an argument\.?": r"\1 needs a value.",
    r"Option '(\S+)' does not take a value\.?": r"\1 takes no value.",
    r"Got unexpected extra argument\S* \((.*)\)": r"There are too many arguments: \1 is not expected",
    r"No such command ('.*?')\. Did you mean (.*)\?": r"There is no command \1; did you mean \2?",
    r"No such command ('.*?')\.?": r"There is no command \1",
}
"""What they say of other errors, and what is said instead; without an end, where to look follows."""


class PlainGroup(TyperGroup):
    """A group of commands that reports an error of usage in one sentence, without a frame."""

    def make_context(self, *arguments: Any, **settings: Any) -> Any:
        with _exit_on_usage_error():
            return super().make_context(*arguments, **settings)

    def invoke(self, ctx: Any) -> Any:
        with _exit_on_usage_error():
            return super().invoke(ctx)


@contextmanager
def _exit_on_usage_error() -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the message is the help
            raise
        log(describe_usage_error(error))
        raise typer.Exit(int(Code.INVALID)) from None


def describe_usage_error(error: Any) -> str:
    """What is wrong with a command line, and what to do."""
    command = None if error.ctx is None else error.ctx.command_path
    see, kind = f"see {command or 'redescend'} --help.", type(error).__name__
    if kind == "MissingParameter" and error.param is not None:
        return f"{_name(error.param)} is missing; {see}"
    if kind == "NoSuchOption":
        near = _join(sorted(error.possibilities or ()))
        return f"{command or 'redescend'} has no option {error.option_name}; {f'did you mean {near}?' if near else see}"
    if isinstance(error, typer.BadParameter) and error.param is not None:
        source: Any = error.ctx and error.ctx.get_parameter_source(error.param.name)
        where = f" in {DEFAULTS}" if source is not None and source.name == "DEFAULT_MAP" else ""
        return f"{_name(error.param)}{where} {_describe_value(error)}"
    for pattern, words in OTHERS.items():
        if found := re.fullmatch(pattern, error.message, re.DOTALL):
            sentence = found.expand(words)
            return sentence if sentence.endswith((".", "?")) else f"{sentence}; {see}"
    return f"{error.format_message().rstrip('.')}; {see}"


def _describe_value(error: Any) -> str:
    details = error.__cause__.errors() if hasattr(error.__cause__, "errors") else []
    for pattern, words in RULES.items():
        if found := re.fullmatch(pattern, error.message, re.DOTALL):
            value = details[0]["input"] if details else error.message.split(" is not ")[0].strip("'")
            if str(value).strip().lower().lstrip("+-") == "nan":  # not in any range
                return f"must be a number. Got {quote(value)}."
            got = value if "at least" in words or "at most" in words else quote(value)
            return f"{found.expand(words).replace(chr(39), '').removesuffix('.0')}. Got {got}."
    if found := re.fullmatch(RANGE, error.message):
        value, low, high = found["value"], found["low"] or found["least"], found["high"]
        limit = f"least {low}" if low and float(value) < float(low) else f"most {high}"
        return f"must be at {limit.removesuffix('.0')}. Got {value.removesuffix('.0')}."
    return f"cannot be used: {error.message.rstrip('.')}."


def _name(param: Any) -> str:
    """The name of an option, or of an argument as the help shows it."""
    if param.param_type_name == "option":
        return str(max(param.opts, key=len))
    return str(param.metavar or param.name.upper())


def _join(names: list[str]) -> str:
    """Join alternatives.

    >>> _join(["--lags", "--loss", "--rounds"]), _join(["--lags"]), _join([])
    ('--lags, --loss or --rounds', '--lags', '')
    """
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))

"""Options from a file `redescend.toml` in the current folder, for all commands or for one of them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from redescend.errors import DataError, suggest

FILE = Path("redescend.toml")


def read_settings(commands: dict[str, Any], path: Path = FILE) -> dict[str, dict[str, Any]]:
    """Read the defaults of the options of each command from the file, if there is one.

    `commands` are the Click commands by name. Options at the top of the file are for all commands that have them; those
    in a table are for the command of that name, and take precedence.
    """
    if not path.is_file():
        return {}
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"'{path}' is not TOML: {error}.") from None
    options = {name: {option.name for option in command.params} for name, command in commands.items()}
    shared = {_to_name(key): value for key, value in content.items() if not isinstance(value, dict)}
    known = set().union(*options.values())
    _check(path, "any command", shared, known)
    defaults = {name: {key: shared[key] for key in shared.keys() & options[name]} for name in commands}
    for command, table in content.items():
        if isinstance(table, dict):
            _check(path, "a table", {command: None}, set(commands))
            own = {_to_name(key): value for key, value in table.items()}
            _check(path, f"redescend {command}", own, options[command])
            defaults[command] |= own
    return defaults


def _to_name(key: str) -> str:
    return key.removeprefix("--").replace("-", "_")


def _check(path: Path, owner: str, settings: dict[str, Any], known: set[str]) -> None:
    for name in settings:
        if name not in known:
            what = "is not a command" if owner == "a table" else f"is not an option of {owner}"
            raise DataError(f"'{name}' in '{path}' {what}; {suggest(sorted(known), name)}")

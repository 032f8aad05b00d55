"""Writes the page of all commands and options, from the commands themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

HEAD = """# Commands and options

Written from the commands themselves; `redescend fit --help` shows the same in the terminal.
[The command line](../command-line.md) is the guide.
"""


def cell(text: str) -> str:
    """Text of a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def describe(name: str, command: Any) -> str:
    """The section of one command: its help as tables."""
    context = command.make_context(f"redescend {name}", [], resilient_parsing=True)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parts = [f"## `redescend {name}`", "", f"```text\n{usage}\n```", "", (command.help or "").strip(), ""]
    rows: dict[str, list[str]] = {}
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record:
            usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
            panel = getattr(parameter, "rich_help_panel", None) or usual
            rows.setdefault(panel, []).append(f"| `{cell(record[0])}` | {cell(record[1])} |")
    for panel, lines in rows.items():
        parts += [f"| {panel} | |", "|---|---|", *lines, ""]
    return "\n".join(parts)


def write_page(app: Any) -> None:
    import typer

    from redescend.cli import app as commands

    group = typer.main.get_command(commands)
    text = "\n".join([HEAD, *(describe(name, one) for name, one in group.commands.items())])
    page = Path(app.srcdir, "api", "commands.md")
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", write_page)
    return {"parallel_read_safe": True}

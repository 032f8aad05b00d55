"""What the help says at its end."""

from __future__ import annotations


def examples(*commands: str) -> str:
    r"""Examples for the end of a help text, each on a line of its own.

    Examples
    --------
    >>> examples("redescend inspect m.safetensors")
    'Examples:\n\n- `redescend inspect m.safetensors`\n\n'
    """
    return "Examples:\n\n" + "".join(f"- `{command}`\n\n" for command in commands)

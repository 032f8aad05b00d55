"""The command, also as a module: ``python -m redescend``."""

from __future__ import annotations

import sys

from redescend.errors import MissingExtraError


def main() -> None:
    """Run the command; without its packages, say in one sentence how to install them."""
    try:
        from redescend.cli import app
    except MissingExtraError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    app(prog_name="redescend")


if __name__ == "__main__":
    main()

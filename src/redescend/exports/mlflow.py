"""Models in MLflow: a Python model (`pyfunc`) that loads a file of `redescend.save`. Nothing is pickled."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from redescend import __version__
from redescend.checkpoint import load, save
from redescend.errors import MissingExtraError

try:
    from mlflow import pyfunc
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "mlflow":
        raise
    raise MissingExtraError("redescend.exports.mlflow needs MLflow; install it with: pip install mlflow") from None


class RedescendModel(pyfunc.PythonModel):
    """Predicts with a model of `redescend`, of a stream or for scikit-learn; made by `save_model` and `log_model`.

    Examples
    --------
    >>> RedescendModel()  # doctest: +SKIP
    """

    def load_context(self, context: Any) -> None:
        """Load the model file among the artifacts of `context`."""
        self._model = load(context.artifacts["model"])

    # Without annotations: MLflow would derive a schema from them.
    def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]
        """Predict the records `model_input`, a data frame or an array; `context` and `params` are ignored."""
        return self._model.predict(model_input)


def save_model(model: Any, path: str | os.PathLike[str], **options: Any) -> None:
    """Save a model as a folder that ``mlflow.pyfunc.load_model`` loads and ``mlflow models serve`` serves.

    Parameters
    ----------
    model : StreamModel or an estimator of redescend.sklearn
        A fitted model.
    path : path-like
        The folder, which must not exist.
    **options
        For ``mlflow.pyfunc.save_model``, such as ``input_example``.

    Returns
    -------
    None

    Examples
    --------
    >>> save_model(model, "houses")  # doctest: +SKIP
    >>> mlflow.pyfunc.load_model("houses").predict(table)  # doctest: +SKIP
    """
    with tempfile.TemporaryDirectory() as folder:
        pyfunc.save_model(os.fspath(path), **_describe_model(model, folder), **options)


def log_model(model: Any, name: str, **options: Any) -> Any:
    """Log a model to the current run of MLflow.

    Parameters
    ----------
    model : StreamModel or an estimator of redescend.sklearn
        A fitted model.
    name : str
        Its name in the run.
    **options
        For ``mlflow.pyfunc.log_model``, such as ``registered_model_name``.

    Returns
    -------
    mlflow.models.model.ModelInfo

    Examples
    --------
    >>> log_model(model, "houses")  # doctest: +SKIP
    """
    with tempfile.TemporaryDirectory() as folder:
        return pyfunc.log_model(name=name, **_describe_model(model, folder), **options)


def _describe_model(model: Any, folder: str) -> dict[str, Any]:
    path = Path(folder, "model.safetensors")
    save(model, path)
    extra = "cli" if hasattr(model, "schema") else "sklearn"
    requirements = [f"redescend[{extra}]=={__version__}"]
    code = Path(__file__).with_name("mlflow_code.py")
    return {"python_model": str(code), "artifacts": {"model": str(path)}, "pip_requirements": requirements}

"""The code that MLflow stores beside a model file, in place of a pickled object."""

from mlflow.models import set_model

from redescend.exports.mlflow import RedescendModel

set_model(RedescendModel())

"""The report of a run, and descriptions of models."""

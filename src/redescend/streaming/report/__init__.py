"""The report of a run and the words for a model."""

"""Files of a run: logs and final outputs, checkpoints, and the check of all output paths."""

"""Files of a run: logs and final outputs, quarantine, checkpoints, and the check of all output paths."""

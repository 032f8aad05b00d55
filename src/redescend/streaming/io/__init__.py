"""What a run writes: round log, quarantine, checkpoints."""

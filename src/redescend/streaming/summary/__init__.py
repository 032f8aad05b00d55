"""What a run keeps in memory about the stream, in a fixed size."""

"""Compiled loops of many descents at once."""

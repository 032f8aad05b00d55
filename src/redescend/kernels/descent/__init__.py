"""Compiled loops of one descent."""

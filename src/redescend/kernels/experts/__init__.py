"""Compiled loops of many descents."""

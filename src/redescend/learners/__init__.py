"""Learners: each plays an action, and updates it when a record is revealed."""

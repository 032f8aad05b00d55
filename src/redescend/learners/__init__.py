"""Who plays: learners that keep an action and move it when a record is revealed."""

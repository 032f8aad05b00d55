"""LEARN with experts: the paper's full grid as printed, robust weights, and their peers."""

"""The paper's experiments, with the comparisons that it leaves out."""

"""The compiled rounds; the only package that knows Numba."""

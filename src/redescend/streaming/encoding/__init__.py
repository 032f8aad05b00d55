"""Encoding of records as rows of numbers: schema, features, target, and batches."""

"""One model for each key of a stream, such as a sensor or a shop: one pass, one file.

Keys are split into shards by a hash of their texts, so that what is learned, and the file, are the same on one thread,
on many, and on a cluster (`shards`, `cluster`). `ModelStore` is all of them together.
"""

from redescend.streaming.keyed.store import ModelStore

__all__ = ["ModelStore"]

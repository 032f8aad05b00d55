"""A served model without a server: made, sent records, opened again, and compared with `redescend.fit_stream`."""

import json

import numpy as np

from redescend.checkpoint import dump_model
from redescend.errors import DivergenceError
from redescend.serve.folder import ModelFolder, open_model
from redescend.serve.journal import Fsync
from redescend.serve.settings import Limits
from redescend.streaming import StreamModel, fit_stream
from tests.serve.servers import make_request

LIMITS = Limits()
POISON = b'{"area": 1, "age": 1, "town": "poison", "price": 1}'


def to_lines(records):
    return [json.dumps(record).encode() for record in records]


def make_model(tmp_path, limits=LIMITS, **settings):
    return ModelFolder(tmp_path, limits).create("m", {"target": "price", "first": 40, **settings})


def send(model, records, sizes=7):
    """Send records in commits of random numbers of requests, each with a random number of records."""
    random, lines, answers = np.random.default_rng(sizes), to_lines(records), []
    while lines:
        requests = []
        for _ in range(random.integers(1, 5)):
            size = int(random.integers(1, 2 * sizes))
            requests.append(make_request(lines[:size]))
            lines = lines[size:]
        answers += model.commit([request for request in requests if request.records])
    return answers


def reopen(model, limits=LIMITS):
    return open_model(model.folder, limits, Fsync.ALWAYS)


def fit(model, **settings):
    fitted, run = fit_stream(str(model.journal.folder), "price", **settings)
    run.run()
    return dump_model(fitted)


def diverge_at_poison(monkeypatch):
    """Let no model learn from a batch with the record `POISON`: it is noticed when the batch has been learned from."""
    real = StreamModel.learn

    def learn(self, batch):
        learned = real(self, batch)
        if "poison" in batch.table.column("town").to_pylist():
            raise DivergenceError("the update overflowed")
        return learned

    monkeypatch.setattr(StreamModel, "learn", learn)

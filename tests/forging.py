"""Forged files of every class that can be saved: any number, text, list or array in them may have been replaced.

``python -m tests.forging 50`` forges 50 files of each model, and loads, teaches and asks what is accepted. It prints a
line of JSON for each model: how many were refused and accepted. A forged file may be refused in a sentence, or learn
and predict like any other; any other exception, a crash, a loop without end, or memory that the file does not explain
ends the process with an error. With ``NUMBA_BOUNDSCHECK=1``, so does every index that compiled code uses out of bounds.
"""

from __future__ import annotations

import copy
import faulthandler
import json
import resource
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

import redescend as rd
from redescend.checkpoint import read_content, write_chunks
from redescend.checkpoint.serialization import Deserializer, Serializer
from redescend.errors import RedescendError
from redescend.streaming import fit_stream
from tests.saved_models import AFTER, BEFORE, COMMON, DIM, ESTIMATORS, LEARNERS, streams, teach

SECONDS = 60
"""After which a forged model is taken to run forever."""

MOST_MEMORY = 256 << 20
"""Bytes by which the memory of the process may grow. The files have some 10 kB."""

NUMBERS = (
    -(10**19),
    -(2**40),
    -7,
    -1,
    0,
    1,
    2,
    7,
    101,
    65_536,
    2**31,
    2**53,
    2**63,
    10**19,
    -0.5,
    0.5,
    1e18,
    1e140,
    1e300,
)
VALUES: tuple[Any, ...] = (None, True, False, "", "x", [], {"dict": []}, {"float": "nan"}, {"float": "inf"}, *NUMBERS)
FLOATS = (np.nan, np.inf, -np.inf, 5e-324, *NUMBERS)


MADE = {**LEARNERS, "clipped anywhere": lambda: rd.ClippedOGD(DIM, quantile=0.7, window=11, **COMMON)}
"""Without a domain, all descents share one kernel, which compiles in seconds."""


def learned_learner(name: str) -> Any:
    learner = MADE[name]()
    rd.play(learner, streams(learner)[0])
    return learner


def go_on_with_learner(learner: Any) -> None:
    stream = streams(learner)[1]
    learner.update(stream.X[0], float(stream.y[0]))
    rd.play(learner, rd.Stream(stream.X[1:40], stream.y[1:40]), keep_actions=True)
    learner.predict(stream.X)


def learned_estimator(name: str) -> Any:
    model = ESTIMATORS[name]()
    teach(name, model, BEFORE)
    return model


def go_on_with_estimator(name: str) -> Callable[[Any], None]:
    def go_on(model: Any) -> None:
        teach(name, model, slice(AFTER.start, AFTER.start + 40))
        if name.startswith("river"):
            x = {0: 1.0, 1: -2.0, 2: 0.5}
            model.score_one(x, 3.0) if "filter" in name else model.predict_one(x)
        elif "scaler" in name:
            model.transform(np.ones((2, 3)))
        else:
            model.predict(np.ones((2, 3)))

    return go_on


def table(rows: int) -> pa.Table:
    place = np.arange(rows)
    town = np.array(["Oslo", "Rome", "Lima"])[place % 3]
    x = np.sin(place)
    return pa.table({"x": x, "town": town, "shop": np.where(place % 2, "a", "b"), "y": 2.0 * x + (place % 3)})


STREAMS: dict[str, dict[str, Any]] = {
    "stream": {},
    "stream order 2": {"order": 2},
    "stream labels": {"task": "classification"},
    "stream trees": {"linear": False},
    "stream table": {"linear": False, "final_look": True, "passes": 2},
    "stream labels trees": {"task": "classification", "linear": False},
    "stream transform": {"transform": rd.transforms.Huber(1.0)},
    "stream lags": {"lags": [1, 5], "lag_columns": ["x"]},
    "keyed": {"by": "shop"},
    "keyed lags": {"by": "shop", "lags": [2]},
}


def learned_stream(name: str) -> Any:
    records = table(90)
    if "labels" in name:
        records = records.set_column(3, "y", pa.array(np.digitize(records["y"].to_numpy(), [0.0, 2.0])))
    model, rounds = fit_stream(records, "y", **STREAMS[name])
    rounds.run()
    return model


def go_on_with_stream(model: Any) -> None:
    records = table(40)
    if model.schema.classifies:
        records = records.set_column(3, "y", pa.array(np.arange(40) % 3))
    from redescend.sources import open_source

    with suppress(RedescendError):  # a forged schema may not fit these records
        model.clean_probability(records)
    for batch in open_source(records, kinds=model.schema.kinds).batches(model.schema.columns):
        model.learn(batch)
    model.predict(records)


def learned_belief(name: str) -> Any:
    belief = rd.belief.LabelBelief(3) if "labels" in name else rd.belief.ResidualBelief(2)
    go_on_with_belief(belief)
    return belief


def go_on_with_belief(belief: Any) -> None:
    random = np.random.default_rng(0)
    predictions, targets = random.normal(size=(2, 90))
    if isinstance(belief, rd.belief.LabelBelief):
        columns = () if belief.classes == 2 else (belief.classes,)
        if belief.classes <= 1000:
            belief.update(random.normal(size=(90, *columns)), np.arange(90) % min(belief.classes, 3))
    else:
        belief.update(predictions, targets, random.normal(size=(90, belief.dim)))
        belief.predict_interval(predictions, random.normal(size=(90, belief.dim)))


SUBJECTS: dict[str, tuple[Callable[[str], Any], Callable[[Any], None]]] = {
    **dict.fromkeys(("belief", "belief labels"), (learned_belief, go_on_with_belief)),
    **dict.fromkeys(MADE, (learned_learner, go_on_with_learner)),
    **{name: (learned_estimator, go_on_with_estimator(name)) for name in ESTIMATORS},
    **dict.fromkeys(STREAMS, (learned_stream, go_on_with_stream)),
}


def places(part: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a description that holds a value: its container and its key."""
    for key in part if isinstance(part, dict) else range(len(part)):
        yield part, key
        if isinstance(part[key], dict | list):
            yield from places(part[key])


def forge_value(description: Any, random: np.random.Generator) -> None:
    """Replace a value, or a part of a list, of the description."""
    found = list(places(description))
    part, key = found[random.integers(len(found))]
    value = part[key]
    if isinstance(value, list) and value and random.random() < 0.7:
        place = random.integers(len(value))
        match random.integers(3):
            case 0:
                del value[place]
            case 1:
                value.insert(place, copy.deepcopy(value[place]))
            case 2:
                value[place] = copy.deepcopy(found[random.integers(len(found))][0])
        return
    if isinstance(value, str) and random.random() < 0.5:
        part[key] = value[: len(value) // 2] + "1e9" + value[len(value) // 2 :]
        return
    part[key] = copy.deepcopy(VALUES[random.integers(len(VALUES))])


def forge_array(arrays: dict[str, Any], random: np.random.Generator) -> None:
    """Change numbers of an array, its type or its shape, or exchange it with another."""
    names = sorted(arrays)
    name = names[random.integers(len(names))]
    array = arrays[name] = arrays[name].copy()
    kind = random.integers(10)
    if kind < 7 and array.size:
        flat = array.reshape(-1)
        where = slice(None) if kind == 6 else random.integers(len(flat), size=random.integers(1, 3))
        old = flat[0 if kind == 6 else where[0]]
        with np.errstate(all="ignore"):
            value = random.choice([*map(float, FLOATS), 2.0 * float(old), -float(old), float(old) + 1.0])
            with suppress(ValueError, OverflowError):
                flat[where] = value if array.dtype.kind == "f" else int(value) if np.isfinite(value) else 0
    elif kind == 7:
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(random.choice(["float32", "float64", "int64", "uint8", "bool"]))
    elif kind == 8:
        shapes = [(-1,), (1, *array.shape), array.shape[::-1], ()]
        with suppress(ValueError):
            arrays[name] = array.reshape(shapes[random.integers(len(shapes))])
    elif random.random() < 0.5 and array.ndim:
        arrays[name] = np.concatenate([array, array]) if random.random() < 0.5 else array[: len(array) // 2].copy()
    else:
        other = names[random.integers(len(names))]
        arrays[name], arrays[other] = arrays[other], array


def forge(model: Any, random: np.random.Generator) -> bytes:
    """A file of the model in which one to three things were changed; its digest is right."""
    serializer = Serializer()
    description = copy.deepcopy(serializer.serialize(model))
    arrays = dict(serializer.arrays)
    for _ in range(random.integers(1, 4)):
        if arrays and random.random() < 0.6:
            forge_array(arrays, random)
        else:
            forge_value(description, random)
    return b"".join(write_chunks(description, arrays))


def try_forged(content: bytes, go_on: Callable[[Any], None]) -> bool:
    """Whether a forged file was accepted. What `load` does with a content, without the file."""
    description, arrays = read_content(content)
    try:
        model = Deserializer(arrays, file_size=len(content)).deserialize(description)
    except (KeyboardInterrupt, SystemError, IndexError):
        # An index out of bounds in compiled code is an IndexError: `load` would hide it.
        raise
    except Exception:
        return False
    if hasattr(model, "state"):
        with suppress(RedescendError):
            go_on(model)
        model.state()
    return True


def main(trials: int, names: list[str]) -> None:
    faulthandler.enable()
    for name in names or SUBJECTS:
        make, go_on = SUBJECTS[name]
        model, accepted = make(name), 0
        try_forged(forge(model, np.random.default_rng(0)), go_on)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for trial in range(trials):
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            try:
                with np.errstate(all="ignore"):
                    accepted += try_forged(
                        forge(model, np.random.default_rng([zlib.crc32(name.encode()), trial])), go_on
                    )
            except Exception as error:
                raise RuntimeError(f"Trial {trial} of {name!r} ended with an unexpected error.") from error
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
            if grown > MOST_MEMORY:
                raise RuntimeError(f"Trial {trial} of {name!r} took {grown >> 20} MiB of memory.")
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps({"model": name, "refused": trials - accepted, "accepted": accepted}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])

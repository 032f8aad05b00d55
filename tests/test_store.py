"""The store: what is saved comes back, and what cannot be trusted is moved away and said so."""

import json
import os
import pickle
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet
import pytest

from redescend.errors import ParameterError
from redescend.experiments import runner as module
from redescend.experiments.results import SCHEMA, Task, join_blocks
from redescend.experiments.runner import Store

TASK = Task("ridge", (("run", 3), ("scale", 0.5), ("kind", "√T")))
OTHER = Task("svm", (("run", 3),))


def rows(seed=0, size=20):
    values = np.random.default_rng(seed).normal(size=size)
    row = {"experiment": "ridge", "problem": "ridge", "run": seed, "rounds": size, "count": "√T", "k": 1}
    first = row | {"learner": "LEARN", "a": 10.0, "b": 0.1, "round": np.arange(size), "measure": "regret"}
    second = row | {"learner": "OGD", "round": np.arange(size), "measure": "regret"}
    return join_blocks([first | {"value": values}, second | {"value": -values}])


def path_of(store, task=TASK):
    return store.folder / "tasks" / f"{task.experiment}-{task.key}.parquet"


def aside(store):
    return sorted((store.folder / "set-aside").iterdir())


def rewrite(path, change, **metadata):
    stored = parquet.read_table(path)
    kept = stored.schema.metadata | {name.encode(): value for name, value in metadata.items()}
    parquet.write_table(change(stored).replace_schema_metadata(kept), path)


def other_value(stored):
    return stored.set_column(11, SCHEMA.field("value"), pa.array(np.zeros(stored.num_rows)))


class Trap:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def make_fifo(path):
    path.unlink()
    os.mkfifo(path)


def make_folder(path):
    path.unlink()
    path.mkdir()


def make_dangling(path):
    path.unlink()
    path.symlink_to("nowhere")


def swap_with_other_task(path):
    store = Store(path.parent.parent)
    store.save(OTHER, rows(1), 0.25)
    os.replace(path_of(store, OTHER), path)


# What happens to a finished task's file, and why it is then not believed.
DAMAGES = {
    "emptied": (lambda path: path.write_bytes(b""), "it cannot be read as Parquet"),
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-9]), "it cannot be read as Parquet"),
    "halved": (lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]), "cannot be read"),
    "text": (lambda path: path.write_text("experiment,value\nridge,0\n"), "it cannot be read as Parquet"),
    "pickle": (lambda path: path.write_bytes(pickle.dumps(Trap(path.with_name("sprung")))), "cannot be read"),
    "no metadata": (lambda path: parquet.write_table(rows(), path), "it does not hold ridge (run 3, "),
    "another task": (swap_with_other_task, "it does not hold ridge (run 3, scale 0.5, kind √T)"),
    "other settings": (lambda path: rewrite(path, lambda t: t, settings="{}"), "it does not hold"),
    "another version": (lambda path: rewrite(path, lambda t: t, key="0" * 24), "it does not hold"),
    "column missing": (
        lambda path: rewrite(path, lambda t: t.drop_columns("a")),
        "its columns are not those of a task",
    ),
    "column renamed": (lambda path: rewrite(path, lambda t: t.rename_columns([*t.schema.names[:-1], "x"])), "columns"),
    "value changed": (lambda path: rewrite(path, other_value), "its digest does not match"),
    "row missing": (lambda path: rewrite(path, lambda t: t.slice(1)), "its digest does not match"),
    "rows swapped": (
        lambda path: rewrite(path, lambda t: t.take(list(range(39, -1, -1)))),
        "its digest does not match",
    ),
    "seconds changed": (lambda path: rewrite(path, lambda t: t, seconds="9.0"), "its digest does not match"),
    "digest changed": (lambda path: rewrite(path, lambda t: t, digest="0" * 64), "its digest does not match"),
    "folder": (make_folder, "it is not a plain file"),
    "pipe": (make_fifo, "it is not a plain file"),
    "dangling link": (make_dangling, "it is not a plain file"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_what_cannot_be_trusted_is_quarantined_and_may_be_saved_again(tmp_path, name):
    damage, reason = DAMAGES[name]
    Store(tmp_path).save(TASK, rows(), 0.5)
    store = Store(tmp_path)
    path = path_of(store)
    damage(path)
    assert store.missing([TASK]) == [TASK]
    assert store.seconds(TASK) is None
    assert not os.path.lexists(path)
    assert [kept.name for kept in aside(store)] == [path.name]
    assert len(store.quarantined) == 1
    assert store.quarantined[0].startswith(f"'{path}' was moved to '{aside(store)[0]}' because ")
    assert reason in store.quarantined[0]
    assert not path.with_name("sprung").exists()
    store.save(TASK, rows(), 0.5)
    assert store.load(TASK).equals(rows())
    assert len(store.quarantined) == 1


def test_no_flipped_byte_changes_a_result(tmp_path):
    store = Store(tmp_path)
    store.save(TASK, rows(), 0.5)
    good = path_of(store).read_bytes()
    refused = 0
    # A prime stride visits every part of the file; some bytes, such as the writer's name, mean nothing to the rows.
    for place in range(0, len(good), 13):
        path_of(store).write_bytes(good[:place] + bytes([good[place] ^ 0x55]) + good[place + 1 :])
        fresh = Store(tmp_path)
        found = fresh.load(TASK)
        if found is None:
            refused += 1
            assert len(fresh.quarantined) == 1
        else:
            assert found.equals(rows())
            assert fresh.seconds(TASK) == 0.5
    assert len(aside(store)) == refused > len(good) // 13 // 2


def test_what_is_saved_comes_back(tmp_path):
    store = Store(tmp_path)
    assert store.load(TASK) is None
    assert store.seconds(TASK) is None
    store.save(TASK, rows(), 0.1)
    for opened in (store, Store(str(tmp_path))):
        loaded = opened.load(TASK)
        assert loaded.equals(rows())
        assert loaded.schema.equals(SCHEMA, check_metadata=True)
        assert opened.seconds(TASK) == 0.1
        assert opened.quarantined == []


def test_a_file_says_what_it_is(tmp_path):
    store = Store(tmp_path)
    store.save(TASK, rows(), 0.1)
    file = parquet.ParquetFile(path_of(store))
    metadata = file.schema_arrow.metadata
    assert metadata[b"experiment"] == b"ridge"
    assert json.loads(metadata[b"settings"]) == dict(TASK.settings)
    assert float(metadata[b"seconds"]) == 0.1
    assert file.metadata.row_group(0).column(11).compression == "ZSTD"


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, -0.0, 5e-324])
def test_odd_values_come_back(tmp_path, odd):
    store = Store(tmp_path)
    changed = rows().set_column(11, SCHEMA.field("value"), pa.array(np.full(40, odd)))
    store.save(TASK, changed, 0.1)
    assert store.load(TASK)["value"].to_numpy().tobytes() == np.full(40, odd).tobytes()


def test_quarantined_overwrites_nothing(tmp_path):
    for content in ("first", "second", "third"):
        store = Store(tmp_path)
        path_of(store).write_text(content)
        assert store.load(TASK) is None
    assert sorted(kept.read_text() for kept in aside(store)) == ["first", "second", "third"]


def test_what_is_not_a_tasks_file_is_quarantined_when_the_folder_is_opened(tmp_path):
    Store(tmp_path).save(TASK, rows(), 0.1)
    (tmp_path / "tasks" / "notes.txt").write_text("mine")
    (tmp_path / "report.html").write_text("not the store's business")
    store = Store(tmp_path)
    assert [kept.name for kept in aside(store)] == ["notes.txt"]
    assert store.quarantined[0].endswith("because it is not the file of a task.")
    assert (tmp_path / "report.html").exists()
    assert store.load(TASK).equals(rows())


def test_stale_parts_are_cleaned_up_and_those_being_written_are_not(tmp_path):
    Store(tmp_path)
    stale = [tmp_path / "tasks" / ".ridge-0.parquet.aa.part", tmp_path / ".results.csv.aa.part"]
    fresh = [part.with_name(part.name.replace("aa", "bb")) for part in stale]
    for part in stale + fresh:
        part.write_bytes(b"PAR1")
    hour_ago = time.time() - 3600
    for part in stale:
        os.utime(part, (hour_ago, hour_ago))
    store = Store(tmp_path)
    assert not any(part.exists() for part in stale)
    assert all(part.exists() for part in fresh)
    assert store.quarantined == []
    assert store.read_rows([TASK]).num_rows == 0


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    store = Store(tmp_path)
    store.save(TASK, rows(), 0.1)

    def fail(table, file, **settings):
        file.write(b"PAR1")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(module.parquet, "write_table", fail)
        with pytest.raises(OSError, match="No space left"):
            store.save(TASK, rows(1), 0.2)
    assert os.listdir(tmp_path / "tasks") == [path_of(store).name]
    assert store.load(TASK).equals(rows())


@pytest.mark.parametrize("bad", [rows().drop_columns("a"), {"value": 1.0}, None])
def test_only_tables_of_the_schema_are_saved(tmp_path, bad):
    store = Store(tmp_path)
    with pytest.raises(ParameterError, match=r"ridge .* must be a table with the columns of SCHEMA\. Got "):
        store.save(TASK, bad, 0.1)
    assert store.load(TASK) is None


def test_tidy_and_missing_keep_the_order_given(tmp_path):
    store = Store(tmp_path)
    tasks = [Task("ridge", (("run", run),)) for run in (2, 0, 1)]
    for run, task in zip((2, 0), tasks, strict=False):
        store.save(task, rows(run), 0.1)
    assert store.read_rows(tasks).equals(pa.concat_tables([rows(2), rows(0)]))
    assert store.read_rows(tasks[::-1]).equals(pa.concat_tables([rows(0), rows(2)]))
    assert store.missing([tasks[2], *tasks, OTHER, OTHER]) == [tasks[2], OTHER]


def test_export(tmp_path):
    store = Store(tmp_path)
    store.save(TASK, rows(), 0.1)
    paths = store.export([TASK, OTHER])
    assert paths == [tmp_path / "results.parquet", tmp_path / "results.csv"]
    assert parquet.read_table(paths[0]).equals(rows())
    # Nothing is lost in the text: the shortest decimals that give the same float, and nothing for what is not there.
    kinds = csv.ConvertOptions(column_types={field.name: field.type for field in SCHEMA})
    assert csv.read_csv(paths[1], convert_options=kinds).cast(SCHEMA).equals(rows())
    assert sorted(os.listdir(tmp_path)) == ["results.csv", "results.parquet", "tasks"]


def test_export_of_nothing_has_the_columns(tmp_path):
    paths = Store(tmp_path).export([TASK])
    assert parquet.read_table(paths[0]).schema.equals(SCHEMA)
    assert paths[1].read_text().strip().replace('"', "") == ",".join(SCHEMA.names)


@pytest.mark.parametrize("inside", [(), ("deeper", "still"), ("tasks",)])
def test_a_file_in_place_of_the_folder(tmp_path, inside):
    blocking = tmp_path / "out"
    if inside == ("tasks",):
        blocking.mkdir()
        blocking = blocking / "tasks"
    blocking.write_text("a file")
    folder = tmp_path / "out" if inside == ("tasks",) else blocking.joinpath(*inside)
    with pytest.raises(ParameterError) as caught:
        Store(folder)
    assert str(caught.value) == f"Results need a folder, but '{blocking}' is a file."


@pytest.mark.parametrize("made", [False, True])
def test_a_folder_that_cannot_be_written(tmp_path, made):
    folder = tmp_path / "out"
    (folder / "tasks" if made else tmp_path).mkdir(parents=True, exist_ok=True)
    for place in (tmp_path, folder, folder / "tasks"):
        if place.exists():
            place.chmod(0o500)
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(65534)  # root may write anywhere
        with pytest.raises(ParameterError) as caught:
            Store(folder)
    finally:
        os.seteuid(user)
        for place in (tmp_path, folder, folder / "tasks"):
            if place.exists():
                place.chmod(0o700)
    assert str(caught.value) == f"Results cannot be written to '{folder}': Permission denied."

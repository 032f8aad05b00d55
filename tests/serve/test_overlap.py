"""Commits that begin while the disk still writes the one before: in their order, or none of them."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import pytest

from redescend.checkpoint import dump_model
from redescend.serve.folder import ModelFolder
from redescend.serve.journal import Fsync
from redescend.serve.settings import Limits
from tests.serve.models import POISON, diverge_at_poison, fit, make_model, reopen, send, to_lines
from tests.serve.servers import ServerProcess, make_records, make_request, write_settings
from tests.serve.test_kills import play


@pytest.fixture
def model(tmp_path):
    model = make_model(tmp_path)
    send(model, make_records(100))
    return model


def make_groups(count, size=400):
    """Groups of two requests each, with keys."""
    lines = to_lines(make_records(count * size, 1))
    parts = [lines[start : start + size // 2] for start in range(0, len(lines), size // 2)]
    requests = [make_request(part, f"key {number}", number) for number, part in enumerate(parts)]
    return [requests[number : number + 2] for number in range(0, len(requests), 2)]


def test_commits_that_overlap_are_those_that_do_not(tmp_path, model):
    other = make_model(tmp_path / "other")
    send(other, make_records(100))
    before, groups = model.dump(), make_groups(3)
    written = [model.begin(group) for group in groups]
    assert None not in written
    assert model.dump() == before
    assert not model.can_begin(groups[0])  # its keys are on their way
    answers = [answer for _ in groups for answer in model.finish()]
    expected = [answer for group in groups for answer in other.commit(group)]
    assert [answer.row for answer in answers] == [answer.row for answer in expected]
    for answer, same in zip(answers, expected, strict=True):
        assert list(answer.outcomes["clean_probability"]) == list(same.outcomes["clean_probability"])
    assert not model.can_begin(groups[1])
    assert model.commit(groups[1])[0].duplicate
    assert model.dump() == other.dump() == reopen(model).dump() == fit(model)
    assert model.summarize() == other.summarize()


def test_after_a_failed_synchronization_later_commits_fail_as_well(model, monkeypatch):
    before, first, second = model.dump(), *make_groups(2)
    held, real = threading.Event(), os.fdatasync

    def synchronize(descriptor, calls=[]):  # noqa: B006
        calls.append(descriptor)
        if len(calls) == 1:
            held.wait(10)
            raise OSError(5, "Input/output error")
        real(descriptor)

    monkeypatch.setattr("redescend.serve.journal.os.fdatasync", synchronize)
    end = model.journal.end
    model.begin(first)
    model.begin(second)
    held.set()
    answers = [*model.finish(), *model.finish()]
    assert [answer.strerror for answer in answers] == ["Input/output error"] * 4
    assert model.dump() == before
    assert model.journal.end == end
    assert "start the server again" in str(model.commit(first)[0])
    assert model.keys == {}


def test_after_a_full_disk_later_commits_fail_until_all_are_finished(model, monkeypatch):
    before, first, second, third = model.dump(), *make_groups(3)

    def fail(descriptor, view):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("redescend.serve.journal.os.write", fail)
        model.begin(first).exception(10)
    # There is room again, but this commit has learned from the one before.
    model.begin(second)
    assert [type(answer) for answer in model.finish()] == [OSError] * 2
    assert not model.can_begin(third)
    assert [type(answer) for answer in model.finish()] == [OSError] * 2
    assert model.dump() == before == fit(model)
    assert model.can_begin(third)
    answers = [answer for group in (third, first, second) for answer in model.commit(group)]
    assert [answer.row for answer in answers] == list(range(101, 1301, 200))
    assert model.dump() == reopen(model).dump() == fit(model)


def test_what_a_model_cannot_learn_from_does_not_harm_the_commit_before(model, monkeypatch):
    diverge_at_poison(monkeypatch)
    (first,) = make_groups(1)
    assert model.begin(first) is not None
    assert model.begin([make_request([*to_lines(make_records(300, 2)), POISON])]) is None
    assert [answer.records for answer in model.finish()] == [200, 200]
    monkeypatch.undo()
    assert model.dump() == reopen(model).dump() == fit(model)


@pytest.mark.parametrize("trees", [False, True])
def test_a_reply_that_cannot_be_made_leaves_nothing_learned(tmp_path, trees, monkeypatch):
    model = make_model(tmp_path, linear=not trees)
    send(model, make_records(100))
    first, second = make_groups(2)

    def fail(*arguments):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("redescend.serve.model.describe_rounds", fail)
        with pytest.raises(MemoryError):
            model.commit(first) if trees else model.begin(first)
    model.commit(second)
    assert model.dump() == reopen(model).dump() == fit(model, linear=not trees)
    assert model.counts.learned == model.statistics.learned


@pytest.mark.parametrize("settings", [{"by": "town"}, {"order": 2}], ids=["keys", "one"])
def test_only_models_that_are_copied_quickly_overlap(tmp_path, settings):
    model = make_model(tmp_path, **settings)
    send(model, make_records(100))
    (group,) = make_groups(1)
    assert model.overlapping == ("by" not in settings)
    model.begin(group)
    assert [answer.records for answer in model.finish()] == [200, 200]
    assert model.dump() == fit(model, **settings)


def test_many_clients_with_long_requests(tmp_path):
    """More commits than one are on their way, and snapshots are taken between them."""
    settings, most = write_settings(tmp_path, first=20), []
    records = make_records(400)
    with ServerProcess(tmp_path / "data", settings, "--every", "3000", "--keep-journal") as server:

        def learn(number):
            with server.client() as client:
                rows = []
                for _ in range(4):
                    answer = client.learn("price", records)
                    rows.append(answer["first_row"])
                    most.append(client.summary("price")["records"] >= answer["first_row"] + 399)
                return rows

        with ThreadPoolExecutor(8) as pool:
            rows = sorted(row for part in pool.map(learn, range(8)) for row in part)
        with server.client() as client:
            model = client.download("price")
        assert server.stop() == 0
    assert rows == [1 + 400 * number for number in range(32)]
    assert all(most)
    served = ModelFolder(tmp_path / "data", Limits(), Fsync.ALWAYS)
    served.open_all()
    reopened = served.writer("price").model
    assert reopened.dump() == model == fit(reopened)


def test_killed_while_commits_overlap(tmp_path):
    play(tmp_path, clients=6, count=800, kills=2, seed=3, sizes=[1, 3, 200, 400], every=5000)


@pytest.mark.parametrize("settings", [{}, {"lags": [1, 2]}, {"target": "town"}], ids=["numbers", "lags", "labels"])
def test_a_copy_continues_with_the_same_bits_and_leaves_the_first_alone(tmp_path, settings):
    model = make_model(tmp_path, **settings)
    send(model, make_records(200))
    parse = model._learning.parse
    with model.read() as first:
        before, copied = dump_model(first), deepcopy(first)
        copied.learn(parse(to_lines(make_records(300, 1)), 200))
        assert dump_model(first) == before
        first.learn(parse(to_lines(make_records(300, 1)), 200))
        assert dump_model(first) == dump_model(copied) != before

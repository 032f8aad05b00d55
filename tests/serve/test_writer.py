"""The writer of a model: which requests are committed together, when, and in which thread."""

import asyncio
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from redescend.errors import DivergenceError
from redescend.serve import writer as module
from redescend.serve.folder import ModelFolder, begin_snapshot
from redescend.serve.replies import ServiceUnavailable
from redescend.serve.settings import Limits
from redescend.serve.writer import Writer
from tests.serve.models import fit, make_model, reopen, send, to_lines
from tests.serve.servers import make_records, make_request, wait_for


@pytest.fixture
def model(tmp_path):
    model = ModelFolder(tmp_path, Limits()).create("m", {"target": "price", "first": 50})
    model.commit([make_request(to_lines(make_records(100)))])
    return model


def play(
    model, run, is_due=lambda model: False, snapshot=lambda model: None, is_read=lambda: True, pool=ThreadPoolExecutor
):
    """Run a coroutine with a writer, and close it."""

    async def main():
        with pool(2) as executor:
            writer = Writer(model, executor, is_due, snapshot, is_read)
            result = await run(writer)
            await asyncio.wait_for(writer.close(), 30)
            assert (writer.queued, writer.lag) == (0, 0.0)
            return result

    return asyncio.run(main())


def hold_learning(model, monkeypatch):
    """Let learning wait for an event; returns it, and the threads and sizes of what is learned."""
    held, seen, real = threading.Event(), [], model.begin

    def begin(requests):
        seen.append((threading.current_thread(), len(requests)))
        held.wait(10)
        return real(requests)

    monkeypatch.setattr(model, "begin", begin)
    return held, seen


def test_records_wait_until_they_are_acknowledged(model, monkeypatch):
    held, seen = hold_learning(model, monkeypatch)

    async def run(writer):
        answer = writer.enqueue(make_request(to_lines(make_records(20))))
        assert writer.queued == 20
        await asyncio.to_thread(wait_for, lambda: seen)
        await asyncio.sleep(0.05)
        assert writer.queued == 20
        assert writer.lag >= 0.05  # while it is learned
        held.set()
        return await answer

    assert play(model, run).records == 20
    assert seen[0][0] is not threading.main_thread()


def test_only_quick_commits_are_learned_in_the_event_loop(model, monkeypatch):
    held, seen = hold_learning(model, monkeypatch)
    held.set()

    async def run(writer):
        for seconds in (float("inf"), 1e-9, 1.0):
            writer._seconds = seconds
            await writer.enqueue(make_request(to_lines(make_records(5))))
        assert 0.0 < writer._seconds < 1.0  # measured

    play(model, run)
    assert [thread is threading.main_thread() for thread, _ in seen] == [False, True, False]


def test_many_records_are_never_learned_in_the_event_loop(model, monkeypatch):
    """Those of the last commit may have been cheap, for example because none could be read."""
    held, seen = hold_learning(model, monkeypatch)
    held.set()
    lines = to_lines(make_records(module.FEW + 1))

    async def run(writer):
        for count in (module.FEW, module.FEW + 1):
            writer._seconds = 1e-9
            await writer.enqueue(make_request(lines[:count]))

    play(model, run, is_read=lambda: False)
    assert [thread is threading.main_thread() for thread, _ in seen] == [True, False]


@pytest.mark.parametrize("read", [True, False])
def test_the_event_loop_learns_for_longer_if_nobody_predicts(model, monkeypatch, read):
    held, seen = hold_learning(model, monkeypatch)
    held.set()

    async def run(writer):
        for seconds in (module.QUICK, module.UNREAD):
            writer._seconds = 0.15 * seconds
            await writer.enqueue(make_request(to_lines(make_records(5))))
            writer._seconds = 0.25 * seconds
            await writer.enqueue(make_request(to_lines(make_records(5))))

    play(model, run, is_read=lambda: read)
    in_loop = [thread is threading.main_thread() for thread, _ in seen]
    assert in_loop == ([True, False, False, False] if read else [True, True, True, False])


def test_a_commit_waits_for_half_of_the_clients_but_not_long(model, monkeypatch):
    """Clients that are answered together come back one by one; the first would be a commit of its own."""
    monkeypatch.setattr(module, "DELAY", 1000.0)
    held, seen = hold_learning(model, monkeypatch)
    held.set()
    lines = to_lines(make_records(10))

    async def run(writer):
        await asyncio.gather(*(writer.enqueue(make_request(lines)) for _ in range(8)))
        few = []
        for _ in range(3):
            few.append(writer.enqueue(make_request(lines)))
            await asyncio.sleep(0.01)
        assert len(seen) == 1
        await asyncio.gather(*few, writer.enqueue(make_request(lines)))
        # The other clients are gone.
        monkeypatch.setattr(module, "DELAY", 0.001)
        for _ in range(2):
            await writer.enqueue(make_request(lines))
            monkeypatch.setattr(module, "DELAY", 1000.0)

    play(model, run)
    assert [size for _, size in seen] == [8, 4, 1, 1]
    assert model.dump() == reopen(model).dump() == fit(model)


def test_commits_are_answered_while_a_thread_learns_from_the_next(model, monkeypatch):
    lines, real, held, learned = to_lines(make_records(50)), model.begin, threading.Event(), []

    def begin(requests):
        if learned:
            held.wait(10)
        learned.append(len(requests))
        return real(requests)

    monkeypatch.setattr(model, "begin", begin)

    async def run(writer):
        first = writer.enqueue(make_request(lines, "a"))
        await asyncio.to_thread(wait_for, lambda: learned)
        second = writer.enqueue(make_request(lines, "b"))
        answers = [await first]
        assert not second.done()
        assert not model.can_begin([make_request(lines, "a")])
        held.set()
        return [*answers, await second]

    assert [answer.row for answer in play(model, run)] == [101, 151]
    assert model.dump() == reopen(model).dump() == fit(model)


def test_each_request_has_an_answer_of_its_own(model, monkeypatch):
    """Duplicates and records that a model cannot learn from, among others."""
    poison, real = b'{"area": 1, "age": 1, "town": "poison", "price": 1}', type(model)._describe

    def describe(self, batch, schema, learned):
        if "poison" in batch.table.column("town").to_pylist():
            raise DivergenceError("the update overflowed")
        return real(self, batch, schema, learned)

    monkeypatch.setattr(type(model), "_describe", describe)
    lines = to_lines(make_records(60))

    async def run(writer):
        requests = [(lines[:20], "a"), ([poison], None), (lines[:20], "a"), (lines[20:40], "b"), (lines[40:], None)]
        futures = [writer.enqueue(make_request(part, key)) for part, key in requests]
        answers = await asyncio.gather(*futures, return_exceptions=True)
        return [answer if isinstance(answer, Exception) else (answer.row, answer.duplicate) for answer in answers]

    answers = play(model, run)
    assert isinstance(answers.pop(1), DivergenceError)
    assert sorted(answers) == [(101, False), (101, True), (121, False), (141, False)]
    monkeypatch.undo()
    assert model.dump() == reopen(model).dump() == fit(model)


def test_a_snapshot_is_taken_between_commits_and_only_once_if_it_fails(model):
    lines, taken = to_lines(make_records(30)), []

    def snapshot(model):
        taken.append((model.counts.records, len(model._prepared)))
        raise OSError(28, "No space left on device")

    async def run(writer):
        for _ in range(3):
            await asyncio.gather(*(writer.enqueue(make_request(lines)) for _ in range(4)))

    play(model, run, lambda model: True, snapshot)
    assert 3 <= len(taken) <= 12
    assert all(begun == 0 for _, begun in taken)
    assert model.counts.records == 100 + 12 * 30


def test_commits_go_on_while_a_snapshot_is_written(model):
    lines, held, begun, written = to_lines(make_records(30)), threading.Event(), [], []

    def snapshot(model):
        begun.append(model.counts.records)

        def write():
            held.wait(10)
            written.append(model.counts.records)

        return write

    async def run(writer):
        for _ in range(3):
            await writer.enqueue(make_request(lines))
            await asyncio.to_thread(wait_for, lambda: begun)
        assert (begun, written) == ([130], [])
        held.set()

    play(model, run, lambda model: True, snapshot)
    # Closing has waited for it. Another may have begun after it, and been waited for as well.
    assert written[0] == 190
    assert len(begun) == len(written)


@pytest.mark.parametrize("settings", [{"by": "town"}, {"linear": False}], ids=["keys", "trees"])
def test_a_model_that_waits_for_its_snapshot_takes_no_thread_from_others(tmp_path, model, settings, monkeypatch):
    waits = make_model(tmp_path / "waits", **settings)
    send(waits, make_records(100))
    assert not waits.overlapping
    lines, held, began = to_lines(make_records(30)), threading.Event(), []

    def save(content, path):
        began.append(content)
        assert held.wait(20)

    monkeypatch.setattr("redescend.serve.folder.save", save)

    async def run(writer):
        other = Writer(model, writer._executor, lambda model: False, lambda model: None)
        await writer.enqueue(make_request(lines))
        await asyncio.to_thread(wait_for, lambda: began)
        learned = []
        for key in ("a", "a", "b"):
            learned.append(writer.enqueue(make_request(lines, key)))
            await asyncio.sleep(0.05)
        try:
            # There are two threads, and the snapshot needs one.
            assert (await asyncio.wait_for(other.enqueue(make_request(lines)), 5)).row == 101
            assert not any(answer.done() for answer in learned)
        finally:
            held.set()
        await other.close()
        return await asyncio.gather(*learned)

    answers = play(waits, run, lambda model: not began, begin_snapshot)
    assert [(answer.row, answer.duplicate) for answer in answers] == [(131, False), (131, True), (161, False)]
    assert waits.dump() == fit(waits, **settings)


def test_an_unexpected_error_of_a_snapshot_is_logged(model, caplog):
    def snapshot(model):
        raise KeyError("unexpected")

    async def run(writer):
        return await writer.enqueue(make_request(to_lines(make_records(30))))

    assert play(model, run, lambda model: True, snapshot).row == 101
    (logged,) = caplog.records
    assert logged.getMessage() == "The snapshot of 'm' was not written."
    assert isinstance(logged.exc_info[1], KeyError)


class RefusingPool(ThreadPoolExecutor):
    """Refuses work at the places in `refused`, as if no thread could be started; it stays in the queue, as there."""

    refused, queue = (), ()

    def __init__(self, threads):
        super().__init__(threads)
        self.places = itertools.count()

    def submit(self, work, /, *arguments):
        if next(self.places) not in self.refused:
            return super().submit(work, *arguments)
        self.queue.append(partial(work, *arguments))
        raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("settings", [{}, {"by": "town"}], ids=["one", "keys"])
def test_a_snapshot_that_no_thread_writes_stops_nothing(tmp_path, settings, caplog, monkeypatch):
    caplog.set_level("ERROR", "redescend.serve")  # another test may have configured the log
    model, lines, began = make_model(tmp_path, **settings), to_lines(make_records(30)), []
    send(model, make_records(100))
    monkeypatch.setattr(RefusingPool, "refused", [2])  # after a commit and the beginning of the snapshot
    monkeypatch.setattr(RefusingPool, "queue", [])

    def snapshot(model):
        began.append(model)
        return begin_snapshot(model)

    async def run(writer):
        rows = []
        for _ in range(4):
            rows.append((await asyncio.wait_for(writer.enqueue(make_request(lines)), 10)).row)
            await asyncio.to_thread(wait_for, lambda: caplog.records)
        for work in RefusingPool.queue:
            work()  # a thread is free now, but the model has learned since
        return rows

    assert play(model, run, lambda model: not began, snapshot, pool=RefusingPool) == [101, 131, 161, 191]
    assert [logged.getMessage() for logged in caplog.records] == ["The snapshot of 'm' was not written."]
    assert len(RefusingPool.queue) == 1
    assert not (model.folder / "snapshot.safetensors").exists()
    assert model.dump() == reopen(model).dump() == fit(model, **settings)


@pytest.mark.parametrize("key", [None, "a"], ids=["overlapping", "alone"])
def test_a_commit_that_no_thread_learns_from_is_refused(model, key, monkeypatch):
    model.commit([make_request(to_lines(make_records(30)), "a")])
    monkeypatch.setattr(RefusingPool, "refused", [0])
    monkeypatch.setattr(RefusingPool, "queue", [])
    before = model.dump()

    async def run(writer):
        with pytest.raises(ServiceUnavailable, match="thread"):
            await asyncio.wait_for(writer.enqueue(make_request(to_lines(make_records(30)), key)), 10)
        for work in RefusingPool.queue:
            work()
        assert model.dump() == before
        return await asyncio.wait_for(writer.enqueue(make_request(to_lines(make_records(30)), "b")), 10)

    assert play(model, run, pool=RefusingPool).row == 131
    assert len(RefusingPool.queue) == 1
    assert model.dump() == reopen(model).dump() == fit(model)

"""The engine: the same bits from any number of processes and from a cluster, whatever interrupts it."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest
import threadpoolctl
from joblib.externals import loky

from redescend import resources
from redescend.errors import ParameterError
from redescend.experiments.results import Task, join_blocks
from redescend.experiments.runner import Store, TaskError, run

ROOT = Path(__file__).parents[1]
# Workers are processes of their own, and must find the functions below.
# A cluster gives a task up when a second worker dies of it; the first may have died of something else.
ENVIRONMENT = os.environ | {
    "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
}
TASKS = [Task("toy", (("seed", seed),)) for seed in (3, 1, 4, 0, 5, 9, 2, 6, 8, 7)]
# A deadline that only a test that is stuck can miss.
PATIENCE = 60.0


def compute(task):
    """Rows whose last bits depend on the order of summation, and so on the number of threads."""
    seed = dict(task.settings)["seed"]
    random = np.random.default_rng(seed)
    values = (random.normal(size=(300, 700)) @ random.normal(size=(700, 300))).sum(axis=0)
    shared = {"experiment": "toy", "problem": "toy", "run": seed, "rounds": 300, "count": "0", "k": 0}
    return join_blocks([shared | {"learner": "x", "round": np.arange(300), "measure": "y", "value": values}])


def slowly(task):
    time.sleep(0.1)
    return compute(task)


def count_threads(task):
    pools = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
    assert pools == [1] * len(pools), pools
    return compute(task)


def fail_at_four(task):
    if task == TASKS[2]:
        raise ZeroDivisionError("a sum of nothing")
    # The last task is not begun before the failure is noticed, however slow that is.
    if task not in TASKS[:2]:
        time.sleep(0.5)
    return slowly(task)


class AwkwardError(Exception):
    """Cannot be unpickled, since its message is not its argument."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def fail_awkwardly(task):
    raise AwkwardError("one", "two")


def end_the_worker(task):
    os.kill(os.getpid(), signal.SIGKILL)


def never(task):
    raise AssertionError("computed again")


def exported(folder):
    return [path.read_bytes() for path in Store(folder).export(TASKS)]


@pytest.fixture(scope="module", autouse=True)
def no_processes_are_left():
    yield
    loky.get_reusable_executor().shutdown(wait=True)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The exports of tasks computed and saved one by one, without the engine."""
    store = Store(tmp_path_factory.mktemp("expected"))
    with threadpoolctl.threadpool_limits(1):
        for task in TASKS:
            store.save(task, compute(task), 0.0)
    return exported(store.folder)


@contextmanager
def started(*command, **settings):
    # A shell makes its background jobs deaf to Ctrl-C, and the tests may be one.
    hear = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen([sys.executable, *command], env=ENVIRONMENT, preexec_fn=hear, **settings)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def scheduler(tmp_path):
    """A Dask scheduler in a process of its own; gives the file that says where it is."""
    file = tmp_path / "scheduler.json"
    options = ["--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0", "--no-dashboard"]
    with started("-m", "dask", "scheduler", *options, "--scheduler-file", str(file), stderr=subprocess.DEVNULL):
        wait_for(lambda: file.exists() and file.read_text().endswith("}"))
        yield file


@pytest.fixture
def workers(scheduler, tmp_path):
    """Two Dask workers, each a process of its own with one thread and no nanny that would start it again."""
    options = ["--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory"]
    command = ["-m", "dask", "worker", "--scheduler-file", str(scheduler), *options, str(tmp_path)]
    with ExitStack() as stack:
        yield [stack.enter_context(started(*command, stderr=subprocess.DEVNULL)) for _ in range(2)]


def address(scheduler):
    return json.loads(scheduler.read_text())["address"]


@pytest.mark.parametrize("jobs", [1, 2, None])
def test_any_number_of_jobs_gives_the_same_bits(tmp_path, expected, jobs):
    store, seen = Store(tmp_path), []
    assert run(TASKS, store, compute, jobs=jobs, done=lambda task, seconds: seen.append((task, seconds))) == len(TASKS)
    assert sorted(task.key for task, _ in seen) == sorted(task.key for task in TASKS)
    assert all(seconds == store.seconds(task) > 0 for task, seconds in seen)
    assert exported(tmp_path) == expected


def test_a_cluster_gives_the_same_bits_though_a_worker_is_killed_and_names_the_task_that_fails(
    tmp_path, monkeypatch, expected, scheduler, workers
):
    check_failure(Store(tmp_path / "failing"), cluster=address(scheduler))
    (tmp_path / "only_here.py").write_text("def compute(task):\n    return None\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here

    with pytest.raises(TaskError, match=r"^toy \(seed 3\) failed: "):
        run(TASKS[:1], Store(tmp_path / "not imported"), only_here.compute, cluster=address(scheduler))
    store, seen = Store(tmp_path / "out"), []

    def done(task, seconds):
        seen.append(task)
        if len(seen) == 3:
            workers[0].kill()

    assert run(TASKS, store, slowly, cluster=address(scheduler), done=done) == len(TASKS)
    assert workers[0].wait(PATIENCE) == -signal.SIGKILL
    assert workers[1].poll() is None
    assert sorted(task.key for task in seen) == sorted(task.key for task in TASKS)
    assert exported(store.folder) == expected
    assert run(TASKS, store, never, cluster="tcp://127.0.0.1:1") == 0


def test_a_task_that_kills_every_worker_of_a_cluster_is_named(tmp_path, scheduler, workers):
    with pytest.raises(TaskError, match=r"^toy \(seed 3\) failed: .*KilledWorker"):
        run(TASKS[:1], Store(tmp_path / "out"), end_the_worker, cluster=address(scheduler))
    assert [worker.wait(PATIENCE) for worker in workers] == [-signal.SIGKILL] * 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_task_that_fails_is_named_and_the_others_are_kept(tmp_path, jobs):
    check_failure(Store(tmp_path), jobs=jobs)


def check_failure(store, **settings):
    with pytest.raises(TaskError) as caught:
        run(TASKS, store, fail_at_four, **settings)
    assert str(caught.value) == "toy (seed 4) failed: ZeroDivisionError: a sum of nothing"
    assert "in fail_at_four" in caught.value.__notes__[0]
    missing = store.missing(TASKS)
    # Two were begun before it; what had not been begun when it failed never is.
    assert TASKS[2] in missing
    assert not {TASKS[0], TASKS[1]} & set(missing)
    assert TASKS[-1] in missing
    assert run(TASKS, store, compute, **settings) == len(missing)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_that_cannot_travel_is_told_all_the_same(tmp_path, jobs):
    with pytest.raises(TaskError) as caught:
        run(TASKS[:1], Store(tmp_path), fail_awkwardly, jobs=jobs)
    assert str(caught.value) == f"toy (seed 3) failed: {__name__}.AwkwardError: one and two"


def test_a_worker_that_is_killed_on_this_machine(tmp_path):
    with pytest.raises(TaskError, match="A worker process was killed"):
        run(TASKS, Store(tmp_path), end_the_worker, jobs=2)
    assert run(TASKS, Store(tmp_path), compute, jobs=2) == len(TASKS)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_task_has_one_thread_and_this_process_its_own_again(tmp_path, jobs):
    before = threadpoolctl.threadpool_info()
    run(TASKS[:3], Store(tmp_path), count_threads, jobs=jobs)
    assert threadpoolctl.threadpool_info() == before


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_is_stored_is_not_computed_again(tmp_path, expected, jobs):
    run(TASKS[:4], Store(tmp_path), compute, jobs=jobs)
    seen = []
    again = [*TASKS, *TASKS]
    assert run(again, Store(tmp_path), compute, jobs=jobs, done=lambda task, seconds: seen.append(task)) == 6
    assert set(seen) == set(TASKS[4:])
    assert run(TASKS, Store(tmp_path), never, jobs=jobs) == 0
    assert exported(tmp_path) == expected


def test_what_cannot_be_trusted_is_computed_again(tmp_path, expected):
    run(TASKS, Store(tmp_path), compute, jobs=1)
    files = sorted((tmp_path / "tasks").iterdir())
    files[0].write_bytes(files[0].read_bytes()[:-1])
    files[1].write_text("not Parquet")
    files[2].write_bytes(files[3].read_bytes())
    store = Store(tmp_path)
    assert run(TASKS, store, compute, jobs=1) == 3
    assert len(store.quarantined) == 3
    assert exported(tmp_path) == expected


# Says each task that is stored, so that the test knows when to interrupt.
PROGRAM = """
import sys
from redescend.experiments.runner import run
from redescend.experiments.runner import Store
from tests.test_engine import TASKS, slowly
try:
    done = lambda task, seconds: print(task.key, flush=True)
    run(TASKS, Store(sys.argv[1]), slowly, jobs=int(sys.argv[2]), done=done)
except KeyboardInterrupt:
    sys.exit("interrupted")
"""


@pytest.mark.parametrize(
    ("jobs", "whole_group"), [(1, False), (2, True), pytest.param(2, False, marks=pytest.mark.soak)]
)
def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, expected, jobs, whole_group):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with started("-c", PROGRAM, str(tmp_path), str(jobs), **pipes) as process:
        lines = [process.stdout.readline().strip() for _ in range(3)]
        # A terminal interrupts the workers too; another program only the process that it knows.
        (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
        rest, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1
        # Now and then loky's own tracker adds a warning about a semaphore of a worker that was ended.
        assert "interrupted" in errors.splitlines()
        assert "Traceback" not in errors
        wait_for(lambda: not group_lives(process.pid))
    stored = {*lines, *rest.split()}
    store = Store(tmp_path)
    missing = store.missing(TASKS)
    assert store.quarantined == []
    assert 3 <= len(stored) < len(TASKS)
    # One more may have been stored and not yet said.
    assert len(TASKS) - len(stored) - len(missing) in (0, 1)
    assert not stored & {task.key for task in missing}
    assert run(TASKS, store, compute, jobs=1) == len(missing)
    assert exported(tmp_path) == expected


def group_lives(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_an_interruption_between_tasks_ends_the_workers(tmp_path):
    def interrupt(task, seconds):
        raise KeyboardInterrupt

    store = Store(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run(TASKS, store, slowly, jobs=2, done=interrupt)
    assert len(store.missing(TASKS)) == len(TASKS) - 1
    wait_for(lambda: not local_workers())


def test_an_interruption_of_the_workers_alone_changes_nothing(tmp_path, expected):
    loky.get_reusable_executor().shutdown(wait=True)
    store = Store(tmp_path)

    def interrupt(task, seconds):
        assert local_workers()
        for worker in local_workers():
            worker.send_signal(signal.SIGINT)

    assert run(TASKS, store, slowly, jobs=2, done=interrupt) == len(TASKS)
    assert exported(tmp_path) == expected


def local_workers():
    return [child for child in psutil.Process().children() if "popen_loky" in " ".join(child.cmdline())]


@pytest.fixture
def hurried(monkeypatch):
    monkeypatch.setattr(resources, "CONNECT_SECONDS", 0.3)


@pytest.fixture
def listener():
    """Something that is no scheduler; gives a function that says where, and what it replies to whoever calls."""
    with ExitStack() as stack:

        def listen(reply):
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            server.settimeout(PATIENCE)

            def answer():
                with contextlib.suppress(OSError), server.accept()[0] as caller:
                    caller.sendall(reply)
                    while caller.recv(1000):
                        pass

            thread = threading.Thread(target=answer)
            thread.start()
            stack.callback(thread.join)
            return f"tcp://127.0.0.1:{server.getsockname()[1]}"

        yield listen


@pytest.mark.parametrize("bad", ["tcp://127.0.0.1:1", "no-such-protocol://here", "tcp://127.0.0.1:none", "", "here"])
def test_a_cluster_that_is_not_there(tmp_path, hurried, bad):
    with pytest.raises(ParameterError, match=f"^No Dask cluster answers at '{bad}': [^\n]+$"):
        run(TASKS, Store(tmp_path), compute, cluster=bad)


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(64)])
def test_something_that_is_no_cluster(tmp_path, hurried, listener, reply):
    where = listener(reply)
    with pytest.raises(ParameterError, match=f"^No Dask cluster answers at '{where}': [^\n]+$"):
        run(TASKS, Store(tmp_path), compute, cluster=where)


def test_a_cluster_without_workers(tmp_path, monkeypatch, scheduler):
    monkeypatch.setattr(resources, "CONNECT_SECONDS", 2.0)
    with pytest.raises(ParameterError, match=r"^The Dask cluster at 'tcp://127\.0\.0\.1:\d+' has no workers\.$"):
        run(TASKS, Store(tmp_path / "out"), compute, cluster=address(scheduler))


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2"])
def test_bad_jobs_are_refused(tmp_path, bad):
    with pytest.raises(ParameterError) as caught:
        run(TASKS, Store(tmp_path), compute, jobs=bad)
    rule = f"The 'jobs' parameter of run must be a whole number in [1, inf). Got {bad!r} instead."
    assert str(caught.value) == rule

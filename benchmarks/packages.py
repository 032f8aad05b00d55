"""The same rows in other packages, with settings as similar as can be: squared loss, l2, a constant step, one pass."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator

from benchmarks.report import Goal, Row, compare
from benchmarks.subjects import DIM, L2, playing, rate, stream_of
from benchmarks.timing import Effort, Task, best_of
from redescend import Stream

Peer = Callable[[Stream], Task]


def scikit_learn(stream: Stream) -> Task:
    """SGDRegressor.partial_fit on the whole table; its squared loss has a factor of 1/2, ours has not."""
    from sklearn.linear_model import SGDRegressor

    def task() -> None:
        model = SGDRegressor(
            loss="squared_error",
            penalty="l2",
            alpha=L2 / 2,
            learning_rate="constant",
            eta0=2 * rate(stream.dim),
            fit_intercept=False,
            shuffle=False,
        )
        model.partial_fit(stream.X, stream.y)

    return task


def vowpal_wabbit(stream: Stream) -> Task:
    """Plain SGD on examples parsed ahead, so that only learning is timed."""
    from vowpalwabbit import Workspace

    options = f"--quiet --sgd --noconstant --power_t 0 --learning_rate {rate(stream.dim)} --l2 {L2}"
    model = Workspace(options)
    lines = (
        f"{y} | " + " ".join(f"{name}:{value}" for name, value in enumerate(x))
        for x, y in zip(stream.X.tolist(), stream.y.tolist(), strict=True)
    )
    examples = [model.parse(line) for line in lines]

    def task() -> None:
        learn_one = model.learn
        for example in examples:
            learn_one(example)

    return task


def river(stream: Stream) -> Task:
    """LinearRegression.learn_one on dicts made ahead."""
    from river import linear_model, optim

    records = [(dict(enumerate(x)), y) for x, y in zip(stream.X.tolist(), stream.y.tolist(), strict=True)]

    def task() -> None:
        model = linear_model.LinearRegression(optimizer=optim.SGD(rate(stream.dim)), l2=L2, intercept_lr=0.0)
        for x, y in records:
            model.learn_one(x, y)

    return task


# package to import, package to install, name, what is run, share of the rows it gets, goal
PEERS: tuple[tuple[str, str, str, Peer, float, Goal], ...] = (
    ("sklearn", "scikit-learn", "SGDRegressor.partial_fit", scikit_learn, 1.0, Goal(4, "speedup")),
    ("vowpalwabbit", "vowpalwabbit", "Vowpal Wabbit, parsed examples", vowpal_wabbit, 0.1, Goal(20, "speedup")),
    ("river", "river", "River learn_one", river, 0.01, Goal(300, "speedup")),
)


def peer_rows(effort: Effort) -> Iterator[Row]:
    """Time per row of our game and of each package, which may get fewer rows."""
    rows = effort.rows_of(DIM)
    stream = stream_of(rows, DIM)
    ours = playing(stream)
    for module, package, name, peer, share, goal in PEERS:
        if importlib.util.find_spec(module) is None:
            yield Row("play, float64", "not measured", f"{name}: pip install {package}", None, str(goal))
            continue
        part = max(1, int(share * rows))
        tasks = {"ours": ours, "theirs": peer(Stream(stream.X[:part], stream.y[:part]))}
        times = best_of(tasks, max(3, effort.repetitions // 2))
        yield compare("play, float64", times["ours"] / rows, name, times["theirs"] / part, goal, per="row")

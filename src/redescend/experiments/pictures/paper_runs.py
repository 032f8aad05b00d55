"""The paper's loss and its runs: regret, weights of the rounds, guarantees, and decision boundaries."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from redescend import transforms
from redescend.experiments.pictures import canvas
from redescend.experiments.pictures.canvas import Picture, line_style
from redescend.experiments.problems import MEASURES, PAPER, PROBLEMS, TITLES
from redescend.experiments.results import Line, Results, angle_between, format_number, read_theta
from redescend.numeric import Array
from redescend.transforms import Transform

REACH, CEILING = 8.0, 8.0


def make_curves() -> dict[str, tuple[Transform, float, dict[str, Any]]]:
    """Each loss of the paper's figure: a transform of r², its factor in the paper's scale, and its line.

    The paper's Tukey is half, and its Welsch 1/2c², of those in redescend.transforms.
    """
    learn, square = line_style("LEARN").options, line_style("OGD").options
    tukey, welsch = (line_style(name).options | {"linewidth": 2.0} for name in ("Tukey", "Welsch"))
    return {
        "LEARN, a = 2, b = e⁻²": (transforms.Learn.from_threshold(4.0, softness=2.0), 1.0, learn),
        "square, r²": (transforms.Identity(), 1.0, square),
        "Tukey, c = 4": (transforms.Tukey(4.0), 0.5, tukey),
        "Tukey, c = 6": (transforms.Tukey(6.0), 0.5, tukey | {"linestyle": (0, canvas.LONG)}),
        "Welsch, c = 2": (transforms.Welsch(2.0), 1.0 / 8.0, welsch),
    }


def draw_losses(results: Results, folder: Path) -> Picture:
    """The losses in the paper's scales, and their weights relative to the weight at r = 0."""
    r = np.linspace(-REACH, REACH, 801)
    curves = make_curves()
    learn, _, style = next(iter(curves.values()))
    handles: dict[str, Any] = {}
    with canvas.open_sheet(folder, "losses", "Robust losses of a residual r, and their weights", 5.4) as sheet:
        titles = ["loss, shifted to 0 at r = 0", "weight h′(r²), relative to r = 0"]
        left, right = sheet.add_panels(titles, bottom=1.15, gap=0.6)
        for label, (transform, factor, line) in curves.items():
            left.plot(r, factor * (transform.value(r * r) - transform.value(0.0)), **line)
            (handles[label],) = right.plot(r, transform.weight(r * r) / transform.weight(0.0), **line)
        (handles["LEARN, absolute weight"],) = right.plot(r, learn.weight(r * r), **(style | {"linewidth": 0.9}))
        left.set(xlim=(-REACH, REACH), ylim=(0.0, CEILING), xlabel="residual r", ylabel="loss")
        right.set(xlim=(-REACH, REACH), ylim=(0.0, 1.05), xlabel="residual r")
        sheet.add_legend_below(handles, 3)
        sheet.caption = _describe_losses(learn)
    return sheet.picture


def _describe_losses(learn: Transform) -> str:
    grid = np.linspace(0.0, REACH, 8001)
    weight = learn.weight(grid * grid)
    half = float(grid[np.argmax(weight < 0.5 * weight[0])])
    top = float(learn.value(REACH**2) - learn.value(0.0))
    return (
        f"LEARN follows the square near 0 and levels off at {format_number(top)}. Its weight is "
        f"{format_number(weight[0])} at r = 0 and half of that at r = {format_number(half)}; like Welsch's and unlike "
        "Tukey's, it approaches 0 without reaching it. All scales are the paper's; LEARN is shifted to be 0 at r = 0."
    )


FIRST_ROUND = 10  # first round on the axis of a long run: before it nothing has been learned

KINDS = {
    "weight clean": ("clean rounds", canvas.BLUE, "."),
    "weight corrupted": ("corrupted rounds", canvas.ORANGE, "x"),
}
STRETCHES, FEWEST = 30, 10  # maximum number of medians along a run, and minimum number of rounds in each

GUARANTEES = {
    "measured": ("clean regret, measured", canvas.BLACK, "o"),
    "convexity": ("after convexity, the first step of the proof", canvas.GREEN, "s"),
    "certificate": ("certificate of the run", canvas.BLUE, "D"),
    "sharp bound": ("Theorem 3.3, sharp constants", canvas.ORANGE, "^"),
    "printed bound": ("Theorem 3.3 as printed", canvas.VERMILION, "v"),
}

LinesByCount = dict[str, dict[str, Line]]


def draw_regret(problem: str, results: Results, folder: Path) -> Picture | None:
    """Mean clean dynamic regret with a band of one standard error, on log axes."""
    rows = results.select(experiment=problem, problem=problem, measure="regret")
    if not len(rows):
        return None
    titles = canvas.count_titles(rows)
    curves = {count: rows.select(count=count).read_lines("round") for count in titles}
    runs = len(rows.unique("run"))
    last = int(rows.column("round").max())
    first = FIRST_ROUND if last > 10 * FIRST_ROUND else 1
    low, high = _find_limits(curves, first)
    title = f"{TITLES[problem]}: clean dynamic regret, mean of {runs} runs ± standard error"
    lines: dict[str, Any] = {}
    with canvas.open_sheet(folder, f"{problem}-regret", title, 7.6) as sheet:
        panels = sheet.add_panels(list(titles.values()), right=2.1, bottom=0.6, gap=0.55)
        for axes, by_learner in zip(panels, curves.values(), strict=True):
            axes.set(xscale="log", yscale="log", xlim=(first, max(last, first + 1)), ylim=(low, high))
            lines |= _draw_curves(axes, by_learner)
            canvas.format_log_axis(axes.xaxis)
            canvas.format_log_axis(axes.yaxis)
        canvas.label_outer(panels, "round (log scale)", "regret so far (log scale)")
        finals = {name: [lines_at[name].mean[-1] for lines_at in curves.values() if name in lines_at] for name in lines}
        over = {each for each, means in finals.items() if not min(means) <= high}
        top = 0.935
        for heading, paper in (("in the paper", True), ("not in the paper", False)):
            group = [each for each in canvas.sort_learners(lines) if (each in PAPER) == paper]
            labels = [f"{each} ↑" if each in over else each for each in group]
            place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.795, top), "alignment": "left"}
            if group:
                sheet.figure.legend([lines[each] for each in group], labels, title=heading, **place)
            top -= 0.0272 * (len(group) + 2)
        if over:
            sheet.figure.text(0.803, top, "↑ ends above the panels", fontsize=9.5)
        diverged = results.select(experiment=problem, problem=problem, measure="diverged").unique("learner")
        sheet.caption = _describe_regret(curves, canvas.sort_learners(diverged))
    return sheet.picture


def _draw_curves(axes: canvas.Axes, curves: dict[str, Line]) -> dict[str, Any]:
    low, high = axes.get_ylim()
    # Clipped a little beyond the panel: the rest is invisible, and an SVG would store it.
    clip = partial(np.clip, a_min=0.1 * low, a_max=10.0 * high)
    lines: dict[str, Any] = {}
    for learner in reversed(canvas.sort_learners(curves)):
        rounds, mean, error = curves[learner]
        style = canvas.line_style(learner)
        # A dashed line on top of LEARN's broad one shows both where they coincide.
        (lines[learner],) = axes.plot(rounds, clip(mean), **style.options, zorder=2.0 if learner in PAPER else 3.0)
        band = clip(mean - error), clip(mean + error)
        axes.fill_between(rounds, *band, color=style.color, alpha=0.18, linewidth=0.0)
    return lines


def _find_limits(curves: LinesByCount, first: int) -> tuple[float, float]:
    """The range of the panels; a learner that diverges leaves them at the top."""
    peaks: dict[str, float] = {}
    lowest = np.inf
    for learner, line in (item for each in curves.values() for item in each.items()):
        mean = line.mean[line.where >= first]
        peaks[learner] = max(peaks.get(learner, 0.0), float(mean.max(initial=0.0)))
        lowest = min(lowest, float(mean[mean > 0.0].min(initial=np.inf)))
    high = 1.3 * canvas.find_panel_top(peaks)
    return min(0.8 * lowest, 0.5 * high), high


def _describe_regret(curves: LinesByCount, diverged: list[str]) -> str:
    count = list(curves)[-1]
    lines = curves[count]
    finals = {name: lines[name].mean[-1] for name in canvas.sort_learners(lines) if np.isfinite(lines[name].mean[-1])}
    smaller = next((name for name in finals if name.startswith("OGD, step/")), None)
    listed = [name for name in (*PAPER[:3], smaller, "oracle") if name in finals]
    parts = [f"{name} ends at {format_number(finals[name])}" for name in listed]
    caption = f"With k = {count}, {', '.join(parts)}." if parts else f"The differences are largest at k = {count}."
    if diverged:
        caption += f" Runs that diverged are left out; their learners are: {'; '.join(diverged)}."
    if smaller is None or "LEARN" not in finals:
        return caption
    both = [each for each in curves.values() if smaller in each and "LEARN" in each]
    ratios = [f"{ratio:.2f}" for ratio in sorted(each[smaller].mean[-1] / each["LEARN"].mean[-1] for each in both)]
    times = ratios[0] if ratios[0] == ratios[-1] else f"{ratios[0]} to {ratios[-1]}"
    return (
        f"{caption} Compare LEARN with the dashed line of '{smaller}', which takes LEARN's largest step and has no "
        f"gate: its final regret is {times} times LEARN's."
    )


def draw_weights(problem: str, results: Results, folder: Path) -> Picture | None:
    """LEARN's weights of single rounds of the first run, and their medians over stretches of it."""
    rows = results.select(experiment=problem, problem=problem, learner="LEARN", run=0)
    weights = {kind: rows.select(measure=kind) for kind in KINDS}
    if not len(weights["weight clean"]):
        return None
    titles, ceiling = canvas.count_titles(weights["weight clean"]), 1.0 / (1.0 + PROBLEMS[problem]().b)
    last = max(float(each.column("round").max()) for each in weights.values() if len(each))
    means: dict[str, dict[str, float]] = {count: {} for count in titles}
    handles: dict[str, Any] = {}
    title = f"{TITLES[problem]}: LEARN's weight of each round, in one run"
    with canvas.open_sheet(folder, f"{problem}-weights", title, 7.6) as sheet:
        panels = sheet.add_panels(list(titles.values()))
        for axes, count in zip(panels, titles, strict=True):
            for kind in KINDS:
                at_count = weights[kind].select(count=count)
                if len(at_count):
                    means[count][kind] = float(at_count.column("value").mean())
                    handles |= _draw_cloud(axes, at_count, *KINDS[kind])
            limit = axes.axhline(ceiling, color=canvas.GREY, linewidth=0.9)
            axes.set(xlim=(0.0, last), ylim=(0.0, 1.1 * ceiling))
            axes.locator_params("x", nbins=5)
            axes.xaxis.set_major_formatter("{x:,.0f}")
        canvas.label_outer(panels, "round", "weight of a round")
        sheet.add_legend_below(handles | {"largest possible, 1/(1 + b)": limit}, 3, markers=2.0)
        sheet.caption = _describe_weights(means)
    return sheet.picture


def _draw_cloud(axes: canvas.Axes, rows: Results, label: str, color: str, marker: str) -> dict[str, Any]:
    rounds, values = rows.column("round"), rows.column("value")
    # Thousands of dots are one image in the SVG as well, which stays small.
    dots: dict[str, Any] = {"color": color, "marker": marker, "alpha": 0.4, "linewidths": 0.7, "rasterized": True}
    points = axes.scatter(rounds, values, 9.0, **dots)
    (line,) = axes.plot(*compute_medians(rounds, values), color=color, linewidth=2.2, zorder=2.5)
    return {f"{label}: single rounds": points, f"{label}: median": line}


def compute_medians(rounds: Array, values: Array) -> tuple[Array, Array]:
    """Median round and median value of stretches of the run with equally many rounds."""
    order = np.argsort(rounds, kind="stable")
    stretches = np.array_split(order, min(STRETCHES, max(1, len(order) // FEWEST)))
    middle, level = ([np.median(part[each]) for each in stretches] for part in (rounds, values))
    return np.array(middle), np.array(level)


def _describe_weights(means: dict[str, dict[str, float]]) -> str:
    both = {count: each for count, each in means.items() if len(each) == len(KINDS)}
    if not both:
        return "All rounds are clean; LEARN reaches its largest weights once it has learned."
    count, last = next(reversed(both.items()))
    clean, corrupted = (last[kind] for kind in KINDS)
    share = 1.0 - corrupted / clean
    verdict = "the gate hardly separates them" if share < 0.1 else "the gate separates them"
    return (
        f"Compare the two colors. At k = {count} a clean round has weight {format_number(clean)} on average and a "
        f"corrupted one {abs(100.0 * share):.2g} % {'less' if share >= 0.0 else 'more'}: {verdict}."
    )


def draw_bounds(problem: str, results: Results, folder: Path) -> Picture | None:
    """A dot for each run and guarantee; a band for each outlier count, with its runs one above the other."""
    rows = results.select(experiment=problem, problem=problem, learner="LEARN")
    measured = rows.select(measure=MEASURES[0])
    if not len(measured):
        return None
    titles = canvas.count_titles(measured)
    values = {
        count: np.array([rows.select(count=count, measure=measure).column("value") for measure in MEASURES])
        for count in titles
    }
    handles: dict[str, Any] = {}
    title = f"{TITLES[problem]}: LEARN's regret and its guarantees, in every run"
    with canvas.open_sheet(folder, f"{problem}-bounds", title, 4.9) as sheet:
        axes = sheet.figure.add_axes((0.205, 0.24, 0.765, 0.65))
        for band, runs in enumerate(values.values()):
            heights = -band + np.linspace(0.32, -0.32, runs.shape[1]) if runs.shape[1] > 1 else np.array([-band])
            for place, (measure, points) in enumerate(zip(MEASURES, runs, strict=True)):
                label, color, marker = GUARANTEES[measure]
                # The measured regret is on top where dots coincide.
                dots: dict[str, Any] = {"color": color, "marker": marker, "zorder": 4.0 - 0.1 * place}
                handles[label] = axes.scatter(points, heights, 11.0, linewidths=0.0, alpha=0.8, **dots)
        axes.set(xscale="log", xlabel="regret", ylim=(-len(values) + 0.4, 0.6))
        axes.set_yticks(-np.arange(len(values)), list(titles.values()))
        axes.grid(visible=False, axis="y")
        sheet.add_legend_below(handles, 3, markers=2.0)
        sheet.caption = _describe_bounds(np.hstack(list(values.values())))
    return sheet.picture


def _describe_bounds(runs: Array) -> str:
    ordered = int(np.count_nonzero((np.diff(runs, axis=0) >= -1e-9 * np.abs(runs[1:])).all(axis=0)))
    certificate, sharp, printed = runs[2:]
    near, far, gain = np.max(certificate / runs[0]), np.min(printed / certificate), np.min(printed / sharp)
    return (
        f"Measured ≤ convexity ≤ certificate ≤ sharp ≤ printed in {ordered} of {runs.shape[1]} runs. The certificate "
        f"is at most {near:.2g} times the regret and at least {far:.1g} times below the printed bound; sharp constants "
        f"reduce that bound at least {gain:.1g}-fold."
    )


def draw_boundaries(results: Results, folder: Path) -> Picture | None:
    """The lines ⟨θ, x⟩ = 0 of every learner and of the truth, one panel for each outlier count."""
    rows = results.select(experiment="boundaries")
    stream = rows.select(learner="stream")
    if not len(stream):
        return None
    titles, title = canvas.count_titles(stream), f"{TITLES['svm']}: decision boundaries after the last round"
    angles: dict[str, dict[str, float]] = {}
    handles: dict[str, Any] = {}
    with canvas.open_sheet(folder, "boundaries", title, 11.0) as sheet:
        panels = sheet.add_panels(list(titles.values()), head=0.7)
        for axes, count in zip(panels, titles, strict=True):
            at_count = rows.select(count=count)
            learners = [learner for learner in at_count.unique("learner") if learner != "stream"]
            thetas = {learner: read_theta(results, count, learner) for learner in learners}
            # A learner that is still at 0 has no boundary.
            thetas = {learner: theta for learner, theta in thetas.items() if theta.any()}
            handles |= _draw_points(axes, at_count.select(learner="stream")) | _draw_boundary_lines(axes, thetas)
            if "truth" in thetas:
                truth = thetas.pop("truth")
                angles[count] = {learner: angle_between(thetas[learner], truth) for learner in thetas}
                axes.set_title(axes.get_title("left"), loc="left", pad=20.0)
                axes.text(0.0, 1.015, f"off by {_list_angles(angles[count])}", fontsize=8.5, transform=axes.transAxes)
        canvas.label_outer(panels, "first feature", "second feature")
        learners = canvas.sort_learners({learner for by_learner in angles.values() for learner in by_learner})
        listed = learners + [key for key in handles if key not in learners]
        sheet.add_legend_below({key: handles[key] for key in listed}, 4, markers=1.5)
        sheet.caption = "The broad grey line is the true boundary; rings mark corrupted rounds."
        if any(angles.values()):
            count = list(angles)[-1]
            sheet.caption += f" Angles to the true boundary at k = {count}: {_list_angles(angles[count])}."
    return sheet.picture


def _list_angles(angles: dict[str, float]) -> str:
    return ", ".join(f"{learner} {angles[learner]:.1f}°" for learner in canvas.sort_learners(angles))


def _draw_points(axes: canvas.Axes, stream: Results) -> dict[str, Any]:
    """Points by their label; corrupted ones have the flipped label and a ring."""
    x0, x1, y, clean = (_read_by_round(stream, measure) for measure in ("x 0", "x 1", "y", "clean"))
    handles: dict[str, Any] = {}
    for label, value, marker, color in (("label +1", 1.0, "+", canvas.GREEN), ("label −1", -1.0, "_", canvas.PURPLE)):
        has_label = y == value
        style: dict[str, Any] = {"color": color, "marker": marker, "linewidths": 1.2, "alpha": 0.8, "zorder": 1.0}
        handles[label] = axes.scatter(x0[has_label], x1[has_label], 30.0, **style)
    bad = clean == 0.0
    if bad.any():
        ring: dict[str, Any] = {"facecolors": "none", "edgecolors": canvas.ORANGE, "linewidths": 1.2, "zorder": 1.2}
        handles["corrupted: label flipped"] = axes.scatter(x0[bad], x1[bad], 80.0, **ring)
    reach = 1.05 * float(np.abs([x0, x1]).max())
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    axes.grid(False)
    return handles


def _read_by_round(stream: Results, measure: str) -> Array:
    rows = stream.select(measure=measure)
    return rows.column("value")[np.argsort(rows.column("round"), kind="stable")]


def _draw_boundary_lines(axes: canvas.Axes, thetas: dict[str, Array]) -> dict[str, Any]:
    handles: dict[str, Any] = {}
    for learner in reversed(canvas.sort_learners(thetas)):
        first, second = thetas[learner]
        truth: dict[str, Any] = {"color": canvas.PALE, "linewidth": 8.0, "zorder": 0.8}
        line = truth if learner == "truth" else {**canvas.line_style(learner).options, "zorder": 2.5}
        handles[learner] = axes.axline((0.0, 0.0), (-second, first), **line)
    return handles

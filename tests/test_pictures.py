"""Pictures are drawn from results alone, the same every time, and say what they show."""

import struct
import xml.etree.ElementTree as ElementTree
import zlib

import matplotlib
import numpy as np
import pytest

from redescend.experiments.pictures import PICTURES, canvas, grids, paper_runs
from redescend.experiments.problems import ridge, svm
from redescend.experiments.results import SCHEMA, Results, angle_between, join_blocks
from tests.picture_results import COUNTS, LEARNERS, ROUNDS, boundary_blocks, every_block, regret_blocks, sweep_blocks

REAL_PIXELS = canvas.PIXELS_PER_INCH


def draw_all(results, folder):
    drawn = (draw(results, folder) for draw in PICTURES.values())
    return [picture for picture in drawn if picture is not None]


PIXELS = 30
"""Small pictures: what is drawn does not depend on their size."""


@pytest.fixture(autouse=True, scope="module")
def _small_pictures():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canvas, "PIXELS_PER_INCH", PIXELS)
        yield


@pytest.fixture(scope="module")
def results():
    return Results(join_blocks(every_block()))


ONCE = [name for name in PICTURES if "ridge" not in name]
"""One picture of each kind: the function that draws a picture of one problem draws that of the other."""

AGAIN = ["losses", "svm-regret", "boundaries", "svm-weights", "svm-grid", "experts-svm-weights"]
"""Lines, bands, markers, dots as an image, a heat map and areas."""


@pytest.fixture(scope="module")
def pictures(results, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    return {name: PICTURES[name](results, folder) for name in ONCE}


@pytest.fixture
def unsaved(monkeypatch):
    """For tests of what is drawn and not of its files."""
    monkeypatch.setattr(canvas, "_save_figure", lambda *arguments: None)


def chunks_of(png):
    """The chunks of a PNG file, with their check sums checked."""
    data = png.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    found, place = [], 8
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        kind, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        assert struct.unpack(">I", data[place + 8 + length : place + 12 + length])[0] == zlib.crc32(kind + body)
        found.append((kind, body))
        place += 12 + length
    return found


def test_every_picture_is_drawn(pictures):
    for name, picture in pictures.items():
        assert picture.name == name
        assert picture.title
        assert picture.caption.endswith(".")


def test_nothing_else_is_left_in_the_folder(pictures):
    folder = next(iter(pictures.values())).png.parent
    wanted = {path.name for picture in pictures.values() for path in (picture.png, picture.svg)}
    assert {path.name for path in folder.iterdir()} == wanted


def width_of(chunks):
    return struct.unpack(">I", chunks[0][1][:4])[0]


def test_the_png_is_whole_and_says_neither_when_nor_by_what_it_was_made(pictures):
    for picture in pictures.values():
        chunks = chunks_of(picture.png)
        kinds = [kind for kind, _ in chunks]
        assert kinds[0] == b"IHDR"
        assert kinds[-1] == b"IEND"
        assert width_of(chunks) == canvas.WIDTH * PIXELS
        assert not {b"tEXt", b"iTXt", b"zTXt", b"tIME"} & set(kinds)


def test_pictures_are_wide_enough_to_read(results, tmp_path, monkeypatch):
    monkeypatch.setattr(canvas, "PIXELS_PER_INCH", REAL_PIXELS)
    assert width_of(chunks_of(paper_runs.draw_losses(results, tmp_path).png)) >= 1200


def test_the_svg_is_whole_and_says_neither_when_nor_by_what_it_was_made(pictures):
    for picture in pictures.values():
        text = picture.svg.read_text(encoding="utf-8")
        assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
        assert "dc:date" not in text
        assert "dc:creator" not in text


def check_same_bytes(names, results, pictures, folder):
    with matplotlib.rc_context({"font.size": 31.0, "lines.linewidth": 9.0, "svg.hashsalt": None}):
        again = [PICTURES[name](results, folder) for name in names]
    for picture in again:
        assert picture.png.read_bytes() == pictures[picture.name].png.read_bytes()
        assert picture.svg.read_bytes() == pictures[picture.name].svg.read_bytes()
        assert picture.caption == pictures[picture.name].caption


def test_the_same_results_give_the_same_bytes_whatever_a_person_has_set(pictures, results, tmp_path):
    check_same_bytes(AGAIN, results, pictures, tmp_path)


@pytest.mark.soak
def test_all_pictures_at_full_size_have_the_same_bytes_again(results, tmp_path, monkeypatch):
    monkeypatch.setattr(canvas, "PIXELS_PER_INCH", REAL_PIXELS)
    first = {picture.name: picture for picture in draw_all(results, tmp_path / "first")}
    assert list(first) == list(PICTURES)
    check_same_bytes(PICTURES, results, first, tmp_path / "again")


@pytest.mark.usefixtures("unsaved")
def test_drawing_leaves_a_persons_settings_as_they_were(results, tmp_path):
    with matplotlib.rc_context({"font.size": 31.0}):
        paper_runs.draw_losses(results, tmp_path)
        assert matplotlib.rcParams["font.size"] == 31.0


@pytest.mark.usefixtures("unsaved")
def test_without_results_only_the_losses_are_drawn(tmp_path):
    nothing = Results(SCHEMA.empty_table())
    assert [picture.name for picture in draw_all(nothing, tmp_path)] == ["losses"]


@pytest.mark.usefixtures("unsaved")
def test_results_of_one_problem_draw_its_pictures_alone(tmp_path):
    drawn = draw_all(Results(join_blocks(regret_blocks("svm"))), tmp_path)
    assert [picture.name for picture in drawn] == ["losses", "svm-regret", "svm-weights", "svm-bounds"]


@pytest.mark.usefixtures("unsaved")
@pytest.mark.parametrize("name", ["ridge-regret", "ridge-weights", "boundaries", "ridge-growth", "ridge-grid"])
def test_an_interrupted_run_is_drawn_as_far_as_it_came(results, tmp_path, name):
    finished = np.isin(results.column("count"), ["0", "√T", "T^⅔", "grid"]) & (results.column("run") == 0)
    picture = PICTURES[name](Results(results.table.filter(finished)), tmp_path)
    assert "T/4" not in picture.caption


@pytest.mark.usefixtures("unsaved")
def test_a_learner_that_never_moved_has_no_boundary(tmp_path):
    blocks = list(boundary_blocks())
    for block in blocks:
        if block["learner"] == "OGD":
            block["value"] = np.zeros(1)
    caption = PICTURES["boundaries"](Results(join_blocks(blocks)), tmp_path).caption
    assert "LEARN 45.0°." in caption
    assert "OGD" not in caption


def test_a_sweep_over_no_outliers_is_no_growth(tmp_path):
    blocks = [block for block in sweep_blocks("ridge") if block["problem"] != "ridge-k" or block["k"] == 0]
    assert PICTURES["ridge-growth"](Results(join_blocks(blocks)), tmp_path) is None


def test_half_of_a_sweep_is_no_growth(tmp_path):
    blocks = [block for block in sweep_blocks("ridge") if block["problem"] == "ridge-k"]
    assert PICTURES["ridge-growth"](Results(join_blocks(blocks)), tmp_path) is None


def test_an_error_while_drawing_leaves_no_file(tmp_path):
    with pytest.raises(ZeroDivisionError), canvas.open_sheet(tmp_path, "name", "title", 3.0):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_an_error_while_saving_keeps_the_old_picture_and_no_part_of_the_new(results, tmp_path, monkeypatch):
    paper_runs.draw_losses(results, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*arguments, **options):
        arguments[1].write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    with pytest.raises(OSError, match="No space"):
        paper_runs.draw_losses(results, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


# --- style ---


EXTRA = ("Pegasos", "OGD, 1/(m·t)", "Top-k, 1/(m·t)")


def all_learners():
    names = list(EXTRA)
    for problem in (ridge(200, 3), svm(200)):
        names += problem.learners(problem.streams(0)["0"])
    return list(dict.fromkeys(names))


def test_each_learner_of_a_problem_has_a_look_of_its_own():
    for problem in (ridge(200, 3), svm(200)):
        names = {*problem.learners(problem.streams(0)["0"]), *EXTRA}
        looks = {(canvas.line_style(name).color, canvas.line_style(name).dash) for name in names}
        assert len(looks) == len(names)


def test_the_papers_learners_are_solid_and_no_other_is():
    solid = [name for name in all_learners() if not canvas.line_style(name).dash]
    assert sorted(solid) == ["LEARN", "OGD", "Top-k", "Uncertain Top-k"]


@pytest.mark.usefixtures("unsaved")
def test_a_drawn_learner_looks_the_same_whoever_else_is_there(tmp_path, monkeypatch):
    from matplotlib.axes import Axes

    plotted, real = [], Axes.plot

    def spy(self, *arguments, **options):
        plotted.append((options.get("color"), options.get("linestyle")))
        return real(self, *arguments, **options)

    monkeypatch.setattr(Axes, "plot", spy)
    seen = []
    for learners in (["Huber, c = 1"], list(LEARNERS), list(reversed(LEARNERS[3:]))):
        blocks = [
            block for block in regret_blocks("ridge") if block["learner"] in learners and block["measure"] == "regret"
        ]
        plotted.clear()
        PICTURES["ridge-regret"](Results(join_blocks(blocks)), tmp_path)
        look = canvas.line_style("Huber, c = 1")
        seen.append(plotted.count((look.color, (0, look.dash))))
    assert seen == [len(COUNTS)] * 3


@pytest.mark.parametrize("order", [LEARNERS, LEARNERS[::-1]])
def test_legends_list_learners_in_one_order(order):
    assert canvas.sort_learners(order) == [*LEARNERS[:6], "something new", "oracle"]


# --- numbers ---


@pytest.mark.parametrize("power", [-0.5, 0.0, 2 / 3, 1.0, 2.5])
@pytest.mark.parametrize("points", [2, 3, 4, 9])
def test_the_exponent_of_a_power_law_is_its_power(power, points):
    x = np.geomspace(10.0, 1e6, points)
    # The logarithms are exact to 1 ulp of about 40, and the slope divides by at least 11.
    assert grids.fit_exponent(x, 3.7 * x**power) == pytest.approx(power, abs=1e-13)


def test_the_exponent_is_that_of_the_larger_half():
    x = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    y = np.array([5.0, 5.0, 5.0, 5.0, 8.0, 16.0, 32.0])
    shuffled = np.random.default_rng(3).permutation(len(x))
    assert grids.fit_exponent(x[shuffled], y[shuffled]) == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize(("x", "y"), [([1.0], [1.0]), ([0.0, 1.0], [1.0, 1.0]), ([2.0, 2.0], [1.0, 3.0]), ([], [])])
def test_there_is_no_exponent_of_one_point(x, y):
    assert np.isnan(grids.fit_exponent(np.array(x), np.array(y)))


@pytest.mark.usefixtures("unsaved")
def test_growth_tells_the_fitted_exponents_beside_the_theorems(tmp_path):
    picture = PICTURES["ridge-growth"](Results(join_blocks(sweep_blocks("ridge", 0.9, 0.55))), tmp_path)
    assert "LEARN k^0.90, T^0.55" in picture.caption
    assert "The theorem allows k^1.00, T^0.67 against" in picture.caption


@pytest.mark.usefixtures("unsaved")
def test_a_learner_that_diverges_in_the_sweep_has_no_exponent(tmp_path):
    blocks = list(sweep_blocks("ridge"))
    for block in blocks:
        if block["learner"] == "OGD" and block["problem"] == "ridge-T":
            block["value"] = 1e200 / np.array([block["rounds"] + block["run"]])
    picture = PICTURES["ridge-growth"](Results(join_blocks(blocks)), tmp_path)
    assert "OGD k^1.00, T: diverges" in picture.caption


def test_the_mean_and_error_of_a_line_are_over_its_runs():
    where = {"rounds": np.array([10, 10, 20]), "value": np.array([1.0, 4.0, 9.0]), "run": np.array([0, 1, 0])}
    block = {"experiment": "sweep", "problem": "p", "count": "", "k": 0, "learner": "L", "round": 1, "measure": "m"}
    x, mean, error = Results(join_blocks([block | where])).read_lines("rounds")["L"]
    assert x.tolist() == [10.0, 20.0]
    assert mean.tolist() == [2.5, 9.0]
    assert error.tolist() == pytest.approx([1.5, 0.0])


def test_the_grid_tells_how_far_the_papers_choice_is_from_the_best(pictures):
    assert pictures["svm-grid"].caption.count("2.5 at k = ") == len(COUNTS)
    assert pictures["svm-grid"].caption.count("star: a = 1, b = 1") == len(COUNTS)


def test_a_cell_without_a_result_is_neither_best_nor_the_papers():
    cells = grids.Grid(np.array([1.0, 10.0]), np.array([1.0, 10.0]), np.array([[np.nan, 5.0], [7.0, np.nan]]))
    assert cells.find_best() == (0, 1)
    assert cells.find(10.0, 10.0) is None
    assert cells.find(3.0, 10.0) is None
    assert cells.find(1.0, 10.0) == (1, 0)


def test_a_grid_in_which_nothing_was_learned_is_not_drawn(tmp_path):
    blocks = [block | {"value": np.array([np.inf])} for block in sweep_blocks("ridge")]
    assert PICTURES["ridge-grid"](Results(join_blocks(blocks)), tmp_path) is None


def test_weights_tell_how_much_less_a_corrupted_round_weighs(pictures):
    assert "0.09 on average and a corrupted one 67 % less" in pictures["svm-weights"].caption


@pytest.mark.usefixtures("unsaved")
def test_bounds_tell_how_many_runs_are_in_order(pictures, tmp_path):
    caption = pictures["svm-bounds"].caption
    assert (
        "in 12 of 12 runs. The certificate is at most 1e+04 times the regret and at least 1e+04 times below" in caption
    )
    blocks = list(regret_blocks("svm"))
    for block in blocks:
        if block["measure"] == "certificate" and block["run"] == 2:
            block["value"] = 1e-9 * block["value"]
    assert "in 8 of 12 runs" in PICTURES["svm-bounds"](Results(join_blocks(blocks)), tmp_path).caption


def test_medians_use_every_round_once():
    random = np.random.default_rng(5)
    rounds = random.permutation(np.arange(1, 1001))
    middle, values = paper_runs.compute_medians(rounds, rounds.astype(float))
    assert np.array_equal(middle, values)
    assert len(middle) == 30
    assert (np.diff(middle) > 0).all()


def test_regret_tells_the_final_regrets_and_who_was_lost(pictures):
    final = 1.1 * ROUNDS**0.5 * 3
    caption = pictures["svm-regret"].caption
    assert f"LEARN ends at {final:.3g}" in caption
    assert "their learners are: lost." in caption
    assert f"is {(5.1 / 1.1):.2f} times LEARN's" in caption


def test_boundaries_tell_the_angles_to_the_truth(pictures):
    assert "LEARN 45.0°, OGD 45.0°" in pictures["boundaries"].caption
    assert angle_between(np.array([-2.0, 0.0]), np.array([1.0, 0.0])) == pytest.approx(180.0)


def test_the_losses_are_those_of_the_paper():
    r = np.linspace(-8.0, 8.0, 33)
    z = r * r
    wanted = {
        "LEARN, a = 2, b = e⁻²": -2 * np.log(np.exp(-z / 2) + np.exp(-2)) + 2 * np.log(1 + np.exp(-2)),
        "square, r²": z,
        "Tukey, c = 4": (16 / 6) * (1 - (1 - np.minimum(z / 16, 1)) ** 3),
        "Tukey, c = 6": (36 / 6) * (1 - (1 - np.minimum(z / 36, 1)) ** 3),
        "Welsch, c = 2": 1 - np.exp(-z / 8),
    }
    drawn = paper_runs.make_curves()
    assert list(drawn) == list(wanted)
    for label, (transform, factor, _) in drawn.items():
        value = factor * (transform.value(z) - transform.value(0.0))
        np.testing.assert_allclose(value, wanted[label], rtol=1e-13, atol=1e-14)

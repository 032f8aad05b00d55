"""The example on digits, once and short: the usual loss learns errors by heart, ours do not."""

from __future__ import annotations

from examples import digits_flipped_labels as example


def test_wrong_labels_hurt_the_usual_loss_and_not_ours(tmp_path):
    curves = example.compare(flips=0.3, seeds=1)
    last = {name: rows[0, -1] for name, rows in curves.items()}
    assert set(last) == set(example.CRITERIA)
    for ours in ("LEARN, a = b = 1", "self-tuning LEARN"):
        assert last[ours] > last["cross-entropy"] + 0.04
    example.draw(curves, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 10_000

"""The self-tuning loss: what it believes, and that it neither freezes nor depends on the unit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from redescend import transforms
from redescend.torch import SelfTuningLearnLoss


def itself(f):
    return f


def batches(seed, count=12, size=64):
    """Squares of normal residuals, of which a quarter is far off."""
    random = np.random.default_rng(seed)
    f = random.normal(size=(count, size)) ** 2
    far = random.random((count, size)) < 0.25
    return torch.tensor(np.where(far, 100.0 + 100.0 * random.random((count, size)), f)), torch.tensor(far)


def label_batches(seed, share=0.3, count=30, size=64, labels=10):
    """Cross-entropies of a network that starts at a guess and becomes sure; wrong labels surprise it more and more."""
    random = np.random.default_rng(seed)
    sure = np.linspace(0.0, 2.0, count).clip(max=1.0)[:, None]
    wrong = random.random((count, size)) < share
    right = np.log(labels) * (1.0 - sure) + 0.2 * sure * random.exponential(size=(count, size))
    surprise = np.log(labels) + sure * (2.0 + 3.0 * random.random((count, size)))
    return torch.tensor(np.where(wrong, surprise, right)), torch.tensor(wrong)


KINDS = {"values": (lambda: SelfTuningLearnLoss(itself), batches)} | {
    "labels": (lambda: SelfTuningLearnLoss(itself, labels=10), label_batches)
}
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_outliers_are_told_from_clean_samples(kind):
    make, records = KINDS[kind]
    criterion, (f, far) = make(), records(0)
    for batch in f:
        criterion(batch)
    weights = criterion.weights(f[-1])
    assert weights[far[-1]].max() < 0.15
    assert weights[~far[-1]].mean() > 0.6


@every_kind
@pytest.mark.parametrize("unit", [1e-6, 0.37, 1e9])
def test_the_unit_of_the_loss_changes_no_weight(kind, unit):
    make, records = KINDS[kind]
    plain, scaled = make(), make()
    for batch in records(1)[0]:
        value, other = plain(batch), scaled(unit * batch)
        torch.testing.assert_close(other, unit * value, rtol=1e-9, atol=0.0)
        torch.testing.assert_close(scaled.weights(unit * batch), plain.weights(batch), rtol=1e-9, atol=1e-12)


@every_kind
def test_the_first_batch_moves_at_once_and_the_gate_before_it_is_open(kind):
    make, records = KINDS[kind]
    criterion, f = make(), 1e5 * records(2)[0][0]
    torch.testing.assert_close(criterion.eval()(f), f.mean(), rtol=1e-12, atol=0.0)
    criterion.train()(f)
    typical = f.sort().values[len(f) // 2]
    assert criterion.weights(typical) > 0.5


@every_kind
def test_no_state_is_frozen(kind):
    """All losses are suddenly a million times as large: soon a typical sample is believed again."""
    make, records = KINDS[kind]
    criterion, (f, _) = make(), records(3)
    for batch in f:
        criterion(batch)
    jumped = 1e6 * f[0]
    # Of ln 10⁶ = 13.8 in a threshold, 10 % are forgotten a batch; after 18 less than ln 9.5 are left.
    for _ in range(18):
        criterion(jumped)
    assert criterion.weights(jumped.median()) > 0.5


@every_kind
def test_evaluation_learns_nothing_and_a_state_dict_continues(kind):
    make, records = KINDS[kind]
    criterion, (f, _) = make(), records(4)
    for batch in f[:6]:
        criterion(batch)
    before = {name: tensor.clone() for name, tensor in criterion.state_dict().items()}
    criterion.eval()(f[6])
    criterion.train().weights(f[6])
    assert all(torch.equal(before[name], tensor) for name, tensor in criterion.state_dict().items())
    again = make().half()
    again.load_state_dict(before)
    for batch in f[6:]:
        assert torch.equal(criterion(batch), again(batch))
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in criterion.state_dict().items())


@every_kind
def test_it_is_the_learn_loss_with_its_present_constants(kind):
    make, records = KINDS[kind]
    criterion = make()
    f = records(5)[0][-1].clone().requires_grad_()
    criterion.reduction = "none"
    value = criterion(f)
    (gradient,) = torch.autograd.grad(value.sum(), f)
    learn, exact = transforms.Learn(float(criterion.a), float(criterion.b)), f.detach().numpy()
    np.testing.assert_allclose(value.detach(), learn.value(exact), rtol=1e-12)
    np.testing.assert_allclose(gradient, learn.weight(exact), rtol=1e-12, atol=1e-300)
    torch.testing.assert_close(gradient, criterion.weights(f), rtol=1e-12, atol=0.0)


def test_two_batches_go_backward_together():
    criterion = SelfTuningLearnLoss(itself)
    f = torch.rand(2, 30, dtype=torch.float64, requires_grad=True)
    (criterion(f[0]) + criterion(f[1])).backward()
    assert (f.grad > 0).all()


@pytest.mark.parametrize("strange", [[0.0] * 8, [torch.inf] * 8, [0.0, torch.inf] * 4, [3.0], [0.0] * 7 + [5.0]])
@every_kind
def test_strange_batches_leave_numbers(kind, strange):
    make, records = KINDS[kind]
    for warm in (0, 5):
        criterion = make()
        for batch in records(6)[0][:warm]:
            criterion(batch)
        f = torch.tensor(strange, dtype=torch.float64, requires_grad=True)
        criterion.reduction = "none"
        value = criterion(f)
        value[torch.isfinite(value)].sum().backward()
        assert not torch.isnan(f.grad).any()
        assert not any(torch.isnan(tensor).any() for tensor in criterion.state_dict().values())
        assert torch.isfinite(criterion(records(6)[0][0])).all()


@every_kind
def test_an_empty_batch_says_nothing(kind):
    make, records = KINDS[kind]
    for warm in (0, 5):
        criterion = make()
        for batch in records(8)[0][:warm]:
            criterion(batch)
        before = {name: tensor.clone() for name, tensor in criterion.state_dict().items()}
        criterion.reduction = "sum"
        assert criterion(torch.zeros(0)) == 0.0
        assert all(torch.equal(before[name], tensor) for name, tensor in criterion.state_dict().items())


def test_ignored_samples_say_nothing():
    """A cross-entropy of ready-made losses: of two scores 0 and ln(eᶠ − 1), the first label has the loss f."""
    f, _ = label_batches(9, labels=2)
    scores = torch.stack([torch.zeros_like(f), torch.log(torch.expm1(f.clamp(min=1e-6)))], dim=-1)
    labels, padding = torch.zeros(64, dtype=torch.int64), torch.full((2000,), -100)
    bare, padded = (SelfTuningLearnLoss(nn.CrossEntropyLoss(reduction="none")) for _ in range(2))
    for batch in scores:
        value = bare(batch, labels)
        longer = padded(torch.cat([torch.zeros(2000, 2), batch]), torch.cat([padding, labels]))
        torch.testing.assert_close(longer, value, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(padded.state_dict(), bare.state_dict(), rtol=1e-12, atol=1e-12)
    assert 0.2 < padded.noise.share < 0.41
    for criterion in (padded, SelfTuningLearnLoss(nn.CrossEntropyLoss(reduction="none"))):
        before = {name: tensor.clone() for name, tensor in criterion.state_dict().items()}
        criterion(torch.zeros(2000, 2), padding)
        assert all(torch.equal(before[name], tensor) for name, tensor in criterion.state_dict().items())


def test_likelihoods_of_labels_are_recognised_and_other_losses_are_of_values():
    likelihoods = (nn.CrossEntropyLoss, nn.NLLLoss, nn.BCELoss, nn.BCEWithLogitsLoss, nn.SoftMarginLoss)
    for kind in likelihoods:
        assert type(SelfTuningLearnLoss(kind(reduction="none")).noise).__name__ == "LabelNoise"
    for kind in (nn.MultiMarginLoss, nn.HingeEmbeddingLoss, nn.PoissonNLLLoss, nn.HuberLoss):
        assert type(SelfTuningLearnLoss(kind(reduction="none")).noise).__name__ == "ValueNoise"
    assert type(SelfTuningLearnLoss(nn.MultiMarginLoss(reduction="none"), labels=4).noise).__name__ == "LabelNoise"


def test_labels_are_recognised_and_counted():
    torch.manual_seed(0)
    criterion = SelfTuningLearnLoss(nn.CrossEntropyLoss(reduction="none"))
    criterion(torch.zeros(40, 26), torch.randint(0, 26, (40,)))
    np.testing.assert_allclose(float(criterion.a), 1.0, rtol=1e-6)  # a guess: the cross-entropy's own unit, in float32
    binary = SelfTuningLearnLoss(nn.BCEWithLogitsLoss(reduction="none"))
    binary(torch.zeros(40), torch.randint(0, 2, (40,)).float())
    np.testing.assert_allclose(float(binary.a), 1.0, rtol=1e-6)


def test_half_precision_losses_are_weighed_as_in_full():
    f = batches(7)[0].clamp(max=150.0)
    full, half = SelfTuningLearnLoss(itself), SelfTuningLearnLoss(itself)
    for batch in f:
        full(batch)
        assert half(batch.half()).dtype == torch.float16
    torch.testing.assert_close(half.weights(f[-1].half()).double(), full.weights(f[-1]), rtol=0.0, atol=0.01)

"""LearnLoss against the transform of the library, in every precision and to the second derivative."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy, l1_loss, mse_loss

from redescend import errors, transforms
from redescend.torch import LearnLoss, SelfTuningLearnLoss, robustify

CONSTANTS = [(1.0, 1.0), (10.0, 10.0), (0.3, 1e-3), (1e4, 10.0), (0.01, 1e-12)]
PRECISIONS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def itself(f):
    return f


def grid(dtype):
    """0, everything in between, and the largest number of the type."""
    info = torch.finfo(dtype)
    positive = torch.logspace(np.log10(info.tiny), np.log10(info.max) - 1e-3, 300, dtype=torch.float64).to(dtype)
    return torch.cat([torch.zeros(1, dtype=dtype), positive, torch.tensor([info.max], dtype=dtype)])


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize(("a", "b"), CONSTANTS)
def test_value_and_gradient_are_those_of_the_transform(a, b, dtype):
    """The reference is in double precision at the rounded f; what is rounded after it is the result, once or twice."""
    f = grid(dtype).requires_grad_()
    value = LearnLoss(itself, a, b, reduction="none")(f)
    (gradient,) = torch.autograd.grad(value.sum(dtype=torch.float64), f)
    exact = f.detach().double().numpy()
    expected, weight = transforms.Learn(a, b).value(exact), transforms.Learn(a, b).weight(exact)
    assert value.dtype == gradient.dtype == dtype
    info = torch.finfo(torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype)
    half = torch.finfo(dtype)
    # The exponent f/a + ln b is rounded before it enters exp: a relative error of its own size in the weight.
    slack = 4.0 * info.eps * np.clip(np.minimum(exact, 1e3 * a) / a + abs(np.log(b)), 1.0, 750.0)
    level = np.abs(expected) + a * abs(np.log(b)) * (info.eps / half.eps)
    assert (np.abs(value.detach().double().numpy() - expected) <= (slack + half.eps) * level + half.tiny).all()
    assert (np.abs(gradient.double().numpy() - weight) <= (slack + half.eps) * weight + half.smallest_normal).all()


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_an_infinite_loss_has_a_finite_value_and_no_gradient(dtype):
    f = torch.tensor([torch.inf, 1.0], dtype=dtype, requires_grad=True)
    value = LearnLoss(itself, 2.0, 0.1, reduction="none")(f)
    (first,) = torch.autograd.grad(value.sum(), f, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), f)
    np.testing.assert_allclose(value[0].item(), -2.0 * np.log(0.1), rtol=2 * torch.finfo(dtype).eps)
    assert first[0] == second[0] == 0.0
    assert torch.isfinite(second).all()


@pytest.mark.parametrize(("a", "b"), CONSTANTS[:3])
def test_first_and_second_derivatives_by_differences(a, b):
    f = (a * torch.linspace(0.01, 8.0, 12, dtype=torch.float64)).requires_grad_()
    criterion = LearnLoss(itself, a, b, reduction="none")
    assert torch.autograd.gradcheck(criterion, f)
    assert torch.autograd.gradgradcheck(criterion, f)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_reductions_and_any_loss_of_each_sample(reduction):
    torch.manual_seed(0)
    scores, labels = torch.randn(7, 4, dtype=torch.float64), torch.tensor([0, 1, 2, 3, 0, 1, 2])
    criterion = LearnLoss(nn.CrossEntropyLoss(reduction="none"), 1.5, 0.2, reduction=reduction)
    each = transforms.Learn(1.5, 0.2).value(nn.functional.cross_entropy(scores, labels, reduction="none").numpy())
    expected = {"none": each, "mean": each.mean(), "sum": each.sum()}[reduction]
    np.testing.assert_allclose(criterion(scores, labels).numpy(), expected, rtol=1e-13)
    np.testing.assert_allclose(criterion(input=scores, target=labels).numpy(), expected, rtol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
@pytest.mark.parametrize("ignore_index", [-100, 2])
def test_ignored_samples_are_as_if_they_were_not_there(ignore_index, dtype):
    torch.manual_seed(1)
    scores, labels = torch.randn(6, 4, 5, dtype=dtype, requires_grad=True), torch.randint(0, 4, (6, 5))
    labels[:3] = ignore_index
    kept = labels != ignore_index
    loss = nn.CrossEntropyLoss(reduction="none", ignore_index=ignore_index)
    each = LearnLoss(loss, 1.5, 0.2, reduction="none")
    alone = each(scores.movedim(1, 2)[kept], labels[kept])
    # PyTorch adds the exponentials of four scores in an order that depends on the layout: a few roundings of about 2.
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(each(scores, labels)[kept], alone, rtol=0.0, atol=8 * eps)
    assert (each(scores, labels)[~kept] == 0.0).all()
    close = {"rtol": 8 * eps, "atol": 0.0}
    torch.testing.assert_close(LearnLoss(loss, 1.5, 0.2)(scores, target=labels), alone.mean(), **close)
    total = LearnLoss(loss, 1.5, 0.2, reduction="sum")(scores, labels)
    torch.testing.assert_close(total, alone.sum(), **close)
    total.backward()
    assert (scores.grad.movedim(1, 2)[~kept] == 0.0).all()
    assert LearnLoss(loss, 1.5, 0.2)(scores, torch.full_like(labels, ignore_index)).isnan()  # as PyTorch's mean of none


def test_with_probabilities_as_targets_nothing_is_ignored():
    scores, target = torch.zeros(3, 4, dtype=torch.float64), torch.full((3, 4), 0.25, dtype=torch.float64)
    found = LearnLoss(nn.CrossEntropyLoss(reduction="none"), 1.5, 0.2)(scores, target)
    np.testing.assert_allclose(found, transforms.Learn(1.5, 0.2).value(np.log(4.0)), rtol=1e-14)


@pytest.mark.parametrize("ask", ["forward", "weights"])
@pytest.mark.parametrize("make", [lambda loss: LearnLoss(loss, 1.0, 1.0), robustify])
def test_a_loss_that_averages_is_refused_and_one_of_a_single_sample_is_not(make, ask):
    x, label = torch.zeros(5, 3), torch.tensor([0, 1, 2, 0, 1])
    for loss, target in ((mse_loss, x), (cross_entropy, label), (partial(l1_loss, reduction="sum"), x)):
        criterion = make(loss)
        before = {name: tensor.clone() for name, tensor in criterion.state_dict().items()}
        with pytest.raises(errors.ParameterError, match=r"a number for each sample\. Got one for all 5 .*'none'\)\.$"):
            getattr(criterion, ask)(x, target)
        assert all(torch.equal(before[name], tensor) for name, tensor in criterion.state_dict().items())
    for loss in (partial(cross_entropy, reduction="none"), nn.CrossEntropyLoss(reduction="none")):
        assert getattr(make(loss), ask)(x, label).isfinite().all()
        assert getattr(make(loss), ask)(x[0], label[0]).isfinite()


def test_a_network_in_half_precision_keeps_its_gate_in_full():
    criterion = LearnLoss(nn.MSELoss(reduction="none"), 0.3, 1e-150)
    for changed in (criterion.half(), criterion.to(torch.bfloat16), criterion.float()):
        assert (float(changed.a), float(changed.b)) == (0.3, 1e-150)
        assert changed.a.dtype == torch.float64


@pytest.mark.parametrize("make", [lambda loss: LearnLoss(loss, 1.0, 0.1), SelfTuningLearnLoss])
def test_any_device(make):
    """The meta device computes shapes alone, and refuses a tensor that was left behind on another."""
    criterion = make(nn.MSELoss(reduction="none")).to("meta")
    guess = torch.zeros(5, 2, device="meta", requires_grad=True)
    value = criterion(guess, torch.zeros(5, 2, device="meta"))
    value.backward()
    assert (value.device.type, value.shape, guess.grad.shape) == ("meta", (), (5, 2))
    assert criterion.to_empty(device="cpu").a.device.type == "cpu"


def test_a_state_dict_carries_the_constants():
    given, taken = LearnLoss(itself, 0.3, 0.7), LearnLoss(itself, 1.0, 1.0)
    taken.load_state_dict(given.state_dict())
    f = torch.linspace(0, 3, 9, dtype=torch.float64)
    assert torch.equal(given(f), taken(f))


@pytest.mark.parametrize("make", [lambda loss: LearnLoss(loss, 1.0, 0.1), SelfTuningLearnLoss])
def test_compiled_in_one_graph_it_is_the_same(make):
    torch.manual_seed(0)
    scores, labels = torch.randn(30, 4), torch.randint(0, 4, (30,))
    labels[::3] = -100
    plain, compiled = (make(nn.CrossEntropyLoss(reduction="none")) for _ in range(2))
    fast = torch.compile(compiled, fullgraph=True, backend="aot_eager")
    gradients = []
    for criterion in (plain, fast):
        free = scores.clone().requires_grad_()
        for _ in range(2):
            value = criterion(free, labels)
        value.backward()
        gradients.append(free.grad)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(plain.state_dict(), compiled.state_dict(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: LearnLoss(nn.MSELoss(), 1.0, 1.0), "'loss' parameter of LearnLoss .* reduction='none'"),
        (lambda: LearnLoss(nn.MSELoss, 1.0, 1.0), "'loss' parameter of LearnLoss must be a loss"),
        (lambda: LearnLoss(3, 1.0, 1.0), "'loss' parameter of LearnLoss must be a loss"),
        (lambda: LearnLoss(itself, -1.0, 1.0), "'a' parameter of Learn "),
        (lambda: LearnLoss(itself, 1.0, 0.0), "'b' parameter of Learn "),
        (lambda: LearnLoss(itself, 1.0, 1.0, reduction="max"), "'reduction' parameter of LearnLoss"),
        (lambda: SelfTuningLearnLoss(itself, labels=1), "'labels' parameter of SelfTuningLearnLoss"),
        (lambda: robustify(itself, a=1.0), "both a and b, or neither"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(make, sentence):
    with pytest.raises(errors.ParameterError, match=sentence):
        make()


def test_robustify_is_one_or_the_other():
    assert type(robustify(itself)) is SelfTuningLearnLoss
    fixed = robustify(itself, a=2.0, b=0.5, reduction="sum")
    assert (type(fixed), float(fixed.a), float(fixed.b), fixed.reduction) == (LearnLoss, 2.0, 0.5, "sum")

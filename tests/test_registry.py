"""One registry of names: every class has one, texts make objects, and bad texts are refused in one sentence."""

from __future__ import annotations

import re

import pytest

import redescend as rd
from redescend import domains, gates, losses, steps, transforms
from redescend.errors import ParameterError
from redescend.registry import DOMAINS, GATES, LOSSES, REGISTRIES, STEPS, TRANSFORMS
from tests.catalogue import CATALOGUE, public_classes


def test_every_public_class_has_one_name():
    assert [registry.module for registry in REGISTRIES] == [module.__name__ for module in CATALOGUE]
    for registry, module in zip(REGISTRIES, CATALOGUE, strict=True):
        assert {*registry.values()} == {*public_classes(module)} - {losses.Custom}
        assert all(registry[name.upper().replace("_", "-")] is registry[f" {name} "] for name in registry)
    names = [name for registry in REGISTRIES for name in registry]
    assert len(names) == len(set(names)), "a nested text would be ambiguous"


def test_names_are_those_that_users_have_written_so_far():
    assert {*LOSSES} == {"squared", "absolute", "epsilon_insensitive", "pinball", "logistic", "hinge"}
    assert {*TRANSFORMS} == {"identity", "learn", "huber", "cauchy", "welsch", "geman_mcclure", "tukey", "barron"}


def test_a_bare_name_stands_for_the_default():
    assert LOSSES.make_default("pinball") == losses.Pinball(0.5)
    assert LOSSES.make_default("epsilon_insensitive") == losses.EpsilonInsensitive(0.1)
    assert all(isinstance(LOSSES.make_default(name), LOSSES[name]) for name in LOSSES)


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.noun)
def test_an_object_is_made_again_from_its_repr(registry):
    """A repr is a text, but for the names of classes, arrays and functions."""
    for one in CATALOGUE[next(module for module in CATALOGUE if module.__name__ == registry.module)]:
        if isinstance(one, gates.Oracle | losses.Custom | domains.Intersection):
            continue
        text = repr(one)
        for kinds in REGISTRIES:
            for name, kind in kinds.items():
                text = re.sub(rf"\b{kind.__name__}\(", f"{name}(", text)
        again = registry.parse(text)
        assert repr(again) == repr(one)


@pytest.mark.parametrize(
    ("registry", "text", "expected"),
    [
        (LOSSES, "pinball:0.9", losses.Pinball(0.9)),
        (LOSSES, "Epsilon-Insensitive:0.5,2", losses.EpsilonInsensitive(0.5, l2=2.0)),
        (LOSSES, "squared", losses.Squared()),
        (LOSSES, "squared()", losses.Squared()),
        (LOSSES, "squared(l2=1e-4)", losses.Squared(l2=1e-4)),
        (TRANSFORMS, " geman-mcclure : 2", transforms.GemanMcClure(2.0)),
        (TRANSFORMS, "barron:-inf,1", transforms.Barron(float("-inf"), 1.0)),
        (TRANSFORMS, "barron(alpha=-inf, c=1)", transforms.Barron(float("-inf"), 1.0)),
        (STEPS, "horizon(1000)", steps.Horizon(1000)),
        (STEPS, "normalised(constant(0.1))", steps.Normalised(steps.Constant(0.1))),
        (DOMAINS, "intersection(ball(1), l1_ball(1))", domains.Intersection(domains.Ball(1), domains.L1Ball(1))),
        (GATES, "top_k(2)", gates.TopK(2)),
    ],
)
def test_a_text_makes_an_object(registry, text, expected):
    assert registry.parse(text) == expected


@pytest.mark.parametrize(
    ("registry", "text", "message"),
    [
        (TRANSFORMS, "hubert:1", "Unknown transform 'hubert'. Choose one of identity, learn, huber, cauchy, "),
        (TRANSFORMS, "", "Unknown transform ''. Choose one of "),
        (LOSSES, "custom", "Unknown loss 'custom'. "),
        (LOSSES, "linearloss", "Unknown loss "),
        (LOSSES, "pinball", "'pinball' has the wrong parameters. Write pinball(quantile, l2=0.0)."),
        (TRANSFORMS, "huber(1, 2)", "'huber(1, 2)' has the wrong parameters. Write huber(c)."),
        (TRANSFORMS, "huber(k=1)", "'huber(k=1)' has the wrong parameters. Write huber(c)."),
        (TRANSFORMS, "huber:one", "Cannot read 'huber:one'. Write huber(c)."),
        (TRANSFORMS, "huber(", "Unknown transform 'huber('. "),
        (TRANSFORMS, "huber(1", "Unknown transform 'huber(1'. "),
        (TRANSFORMS, "huber(1) + 1", "Unknown transform 'huber(1) + 1'. "),
        (TRANSFORMS, "huber(c=)", "Cannot read 'huber(c=)'. "),
        (TRANSFORMS, "huber(**{})", "'huber(**{})' has the wrong parameters. "),
        (TRANSFORMS, "huber(1) if x else (2)", "Cannot read "),
        (TRANSFORMS, "huber(open('x'))", "Cannot read "),
        (TRANSFORMS, "huber(().real)", "Cannot read "),
        (TRANSFORMS, "huber(" + "(" * 9000 + ")" * 9000 + ")", "Cannot read "),
        (TRANSFORMS, "huber(-1)", "The 'c' parameter of Huber must be a float in [1e-100, 1e+100]. Got -1 instead."),
        (STEPS, "normalised(constant())", "'constant()' has the wrong parameters. Write constant(alpha)."),
        (STEPS, "normalised(huber(1))", "The 'step' parameter of Normalised must be a step"),
    ],
)
def test_a_bad_text_is_refused_in_one_sentence(registry, text, message):
    with pytest.raises(ParameterError) as refused:
        registry.parse(text)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("base", [losses.LinearLoss, transforms.Transform, steps.Step])
def test_a_class_without_its_branches_cannot_be_defined(base):
    with pytest.raises(ParameterError, match="No formula has the code 99; add its branch"):
        type("Forgotten", (base,), {"kind": 99})


def test_an_unknown_gate_or_domain_raises_where_it_is_used(monkeypatch):
    monkeypatch.setattr(gates.Clip, "kind", 99)
    with pytest.raises(ParameterError, match="No formula has the code 99"):
        rd.Descent(1, loss=losses.Squared(), gate=gates.Clip(), step=steps.Anytime()).update([1.0], 1.0)
    with pytest.raises(ParameterError, match="No formula has the code 99"):
        gates.remember(99, gates.Clip().fresh_memory(), 1.0)
    monkeypatch.setattr(domains.Ball, "kind", 99)
    with pytest.raises(ParameterError, match="No formula has the code 99"):
        domains.Ball(1.0).project([1.0])


def test_a_loss_without_a_likelihood_is_not_self_tuned(monkeypatch):
    monkeypatch.setattr(losses.Absolute, "kind", 99)
    with pytest.raises(ParameterError, match="a loss with a likelihood in kernels"):
        rd.SelfTuning(1, loss=losses.Absolute())

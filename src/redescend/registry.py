"""Names of losses, transforms, steps, domains and gates, as users write them.

Each registry holds the public classes of one module, so a class that is added there has a name at once: the name of the
class in snake case. scikit-learn, River, the command line and saved files all use these registries.

>>> LOSSES["epsilon_insensitive"].__name__, TRANSFORMS.parse("huber(c=1.5)")
('EpsilonInsensitive', Huber(c=1.5))
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Generic, TypeVar

from redescend import domains, gates, losses, steps, transforms
from redescend.errors import ParameterError
from redescend.parameters import Component

T = TypeVar("T", bound=Component)

TEXT = re.compile(r"\s*([^:()]*?)\s*(?::(?P<numbers>[^()]*)|\((?P<arguments>.*)\)\s*)?", re.DOTALL)


class Registry(Mapping[str, type[T]], Generic[T]):
    """The public classes of a module, by name.

    Parameters
    ----------
    noun : str
        What one of the classes is called in messages, such as ``"transform"``.
    module : module
        The module that users import the classes from.
    base : type
        The class that they inherit from.

    Examples
    --------
    >>> list(TRANSFORMS)[:3], TRANSFORMS["Geman-McClure"].__name__, "hubert" in TRANSFORMS
    (['identity', 'learn', 'huber'], 'GemanMcClure', False)
    """

    def __init__(self, noun: str, module: ModuleType, base: type) -> None:
        self.noun, self.base, self.module = noun, base, module.__name__
        self._classes: dict[str, type[T]] = {
            snake_case(member.__name__): member
            for member in _list_subclasses(base)
            if vars(module).get(member.__name__) == member and hasattr(member, "kind")
        }

    def __getitem__(self, name: str) -> type[T]:
        return self._classes[name.strip().lower().replace("-", "_")]

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)

    def __repr__(self) -> str:
        return f"Registry({', '.join(self)})"

    def make_default(self, name: str) -> T:
        """Make the object of a bare `name`, from its class's defaults or `default_parameters`.

        Examples
        --------
        >>> LOSSES.make_default("pinball")
        Pinball(quantile=0.5, l2=0.0)
        """
        kind: Any = self[name]
        return kind(*getattr(kind, "default_parameters", ()))

    def parse(self, text: str) -> T:
        """Make the object that `text` describes: a name, with its parameters in parentheses or behind a colon.

        Examples
        --------
        >>> TRANSFORMS.parse("learn:0.1,0.01"), GATES.parse("robust(huber(1))")
        (Learn(a=0.1, b=0.01), Robust(transform=Huber(c=1.0)))
        >>> TRANSFORMS.parse("hubert:1")
        Traceback (most recent call last):
            ...
        redescend.errors.ParameterError: Unknown transform 'hubert'. Choose one of identity, learn, huber, ...
        """
        parts = TEXT.fullmatch(text)
        name = parts[1] if parts else text
        if name not in self:
            raise ParameterError(f"Unknown {self.noun} '{name}'. Choose one of {', '.join(self)}.")
        kind: Any = self[name]
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        try:
            if parts and parts["numbers"]:
                positional = [float(number) for number in parts["numbers"].split(",")]
            elif parts and parts["arguments"]:
                call: Any = ast.parse(f"_({parts['arguments'].strip()})", mode="eval").body
                positional = [_parse_node(one) for one in call.args]
                keywords = {one.arg: _parse_node(one.value) for one in call.keywords}
        except ParameterError:
            raise
        except (SyntaxError, ValueError, TypeError, AttributeError, StopIteration, RecursionError, MemoryError):
            raise ParameterError(f"Cannot read '{text}'. Write {self.describe(name)}.") from None
        try:
            return kind(*positional, **keywords)
        except TypeError:
            raise ParameterError(f"'{text}' has the wrong parameters. Write {self.describe(name)}.") from None

    def describe(self, name: str) -> str:
        """Return how the class `name` is written as a text: with its parameters and their defaults.

        Examples
        --------
        >>> LOSSES.describe("pinball"), DOMAINS.describe("reals")
        ('pinball(quantile, l2=0.0)', 'reals')
        """
        parameters = inspect.signature(self[name]).parameters.values()
        written = ", ".join(str(one.replace(annotation=inspect.Parameter.empty)) for one in parameters)
        return f"{name}({written})" if written else name


def snake_case(name: str) -> str:
    # 'Mc' begins a word and does not end one: geman_mcclure.
    return re.sub(r"(?<=[a-z0-9])(?<!Mc)(?=[A-Z])", "_", name).lower()


def _list_subclasses(base: Any) -> list[Any]:
    """All subclasses, in the order of definition."""
    return [one for child in base.__subclasses__() for one in (child, *_list_subclasses(child))]


def _parse_node(node: ast.expr) -> Any:
    """The value of a literal, of inf, or of a nested text such as the step in normalised(constant(0.1))."""
    if isinstance(node, ast.Call):
        text = ast.unparse(node)
        return next(one for one in REGISTRIES if text.partition("(")[0] in one).parse(text)
    if isinstance(node, ast.Name):
        return float(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_parse_node(node.operand)
    return [_parse_node(one) for one in node.elts] if isinstance(node, ast.List) else ast.literal_eval(node)


LOSSES: Registry[losses.LinearLoss] = Registry("loss", losses, losses.LinearLoss)
TRANSFORMS: Registry[transforms.Transform] = Registry("transform", transforms, transforms.Transform)
DOMAINS: Registry[domains.Domain] = Registry("domain", domains, domains.Domain)
STEPS: Registry[steps.Step] = Registry("step", steps, steps.Step)
GATES: Registry[gates.Gate] = Registry("gate", gates, gates.Gate)

REGISTRIES: tuple[Registry[Any], ...] = (LOSSES, TRANSFORMS, DOMAINS, STEPS, GATES)

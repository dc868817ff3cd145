"""Keywords: what may be said of a release beside its columns and its predicate; names and meanings stand here once.

`count`, `histogram`, `explain` and the accessor take them as ``**options``, and show them in signature and help.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Required, TypedDict, TypeVar, cast

if TYPE_CHECKING:
    from pkdp_pipeline.certificates.target import Asked
    from pkdp_pipeline.ledger import Ledger
    from pkdp_pipeline.model.attacker import AttackerModel
    from pkdp_pipeline.model.mechanisms import GeometricNoise

F = TypeVar("F", bound=Callable[..., Any])

_MEANINGS = """
unit : str, sequence of str, or EACH_ROW
    Columns that name a person.
attacker : AttackerModel, optional
    May be left out where there is noise, which asks nothing of an attacker.
k, noise, release_threshold : optional
    See `Count` and `Histogram`.
k_complement : int, optional
    See `Count`. The number of people in the frame is taken as public.
domain : list, or dict of column → list, optional
    The public cells, published in this order, empty ones as suppressed. For several columns a list of tuples, or a
    dict whose combinations are the cells. None: only cells that reach `k` appear, and no trace of the others.
protects : {"presence", "value"}, default "presence"
    ``"value"`` for a count: publish the exact number of all people as a total, against an attacker whose `leakage`
    says that it is known. It hides nothing about who is there, and takes nothing from histograms that are certified
    against such an attacker and protect the value too.
where : boolean Series, str or callable, optional
    Which rows count; see `count`.
missing_unit : {"error", "drop"}, default "error"
    What happens to rows whose unit is missing.
units : {"checked", "exact"}, default "checked"
    Names of people that differ only by spaces around them are refused; ``"exact"`` says that they are different
    people.
one_cell : {"error", "most_frequent", "first", "hash"}, default "error"
    Which of its own cells a person with rows in several is counted in; see `Question`.
order_by : str or sequence of str, optional
    For ``one_cell="first"``.
undeclared : {"error", "absent"}, default "error"
    What happens to people whose cell is not in the domain, after `one_cell` has chosen it.
ledger : Ledger, optional
period : str or datetime.date, optional
    The period the data are about; needed with a ledger.
label : str, optional
    Names a predicate that is a Series or a callable; needed for them with a ledger.
revise : bool, default False
    With a ledger that has published this question: publish the changed data as a new, charged release.
target : Target or None, optional
    What it has to promise at least: without it the ledger's, or a finite ε at δ = 1e-6. None: nothing.
"""
_DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        "protects": "presence",
        "missing_unit": "error",
        "units": "checked",
        "one_cell": "error",
        "undeclared": "error",
        "revise": False,
        "target": "default",
    }
)


class Publishing(TypedDict, total=False):
    """What `publish` takes beside the question."""

    attacker: AttackerModel | None
    ledger: Ledger | None
    revise: bool
    target: Asked


class Terms(Publishing, total=False):
    """What `Publication` takes beside the question."""

    alone: bool


class _Options(Publishing, total=False):
    unit: Required[Any]
    k: int | None
    noise: GeometricNoise | None
    release_threshold: int | None
    protects: str
    missing_unit: str
    units: str
    period: Any
    label: str | None


class _Cells(_Options, total=False):
    domain: Any
    one_cell: str
    order_by: Any
    undeclared: str


class CountOptions(_Options, total=False):
    """Options of `count`."""

    k_complement: int | None


class HistogramOptions(_Cells, total=False):
    """Options of `histogram`."""

    where: Any


class ExplainOptions(_Cells, total=False):
    """Options of `explain`."""

    k_complement: int | None


def shows(options: Any) -> Callable[[F], F]:
    """Return a decorator that writes the fields of a TypedDict into the signature and the docstring of ``**options``.

    What is called otherwise than the signature says is a TypeError, as with every function.
    """
    types = {name: getattr(kind, "__forward_arg__", kind) for name, kind in options.__annotations__.items()}
    meanings = re.split(r"\n(?=\w)", _MEANINGS.strip())
    listed = [text for text in meanings if text.partition(" :")[0].split(", ")[0] in types]
    ordered = [name for text in listed for name in text.partition(" :")[0].split(", ")]
    keywords = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if name == "unit" else _DEFAULTS.get(name),
            annotation=re.sub(r"^Required\[(.*)\]$", r"\1", types[name]),
        )
        for name in ordered
    ]

    def decorated(function: F) -> F:
        signature = inspect.signature(function)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        signature = signature.replace(parameters=[*own, *keywords])

        @functools.wraps(function)
        def called(*values: Any, **given: Any) -> Any:
            signature.bind(*values, **given)
            return function(*values, **given)

        before, returns, after = inspect.cleandoc(function.__doc__ or "").partition("\n\nReturns\n")
        called.__doc__ = "\n".join([before, *listed]) + returns + after
        called.__signature__ = signature  # type: ignore[attr-defined]  # what inspect reads
        return cast("F", called)

    return decorated

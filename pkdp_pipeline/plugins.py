"""Plugins: what packages add to this one: commands, sources, outputs, engines, views, and steps around a job's periods.

A package names a `Plugin` under the entry point ``pkdp_pipeline.plugins``. The folders of `extras` are registered in
this way too, so that nothing of the core knows them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, Literal

from pkdp_pipeline.errors import ConfigError

GROUP = "pkdp_pipeline.plugins"
"""The group of entry points."""

Kind = Literal["commands", "sources", "outputs", "formats", "engines", "views", "after_period"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """The names that a package adds, by kind: each stands for an object, ``module:object``, imported when it is needed.

    Parameters
    ----------
    commands : mapping of str to str
        Commands of ``pkdp``: functions, or groups of them as `typer.Typer`.
    sources : mapping of str to str
        Keys of ``source`` in a job file: subclasses of `jobs.source_tables.SourceTable`. ``files:NAME`` reads the files
        of a job whose engine is NAME; ``files:excel`` writes workbooks as CSV. Other formats are keys of their own.
    outputs : mapping of str to str
        Keys of ``[output]`` in a job file: functions as in `jobs.outputs.Output`.
    formats : mapping of str to str
        Names in ``formats`` of ``[output]``: functions as in `jobs.outputs.Format`.
    engines : mapping of str to str
        Classes of frames, as in ``pyspark.DataFrame``: subclasses of `engines.Engine`.
    views : mapping of str to str
        Functions and classes that draw, print or read values: what a room needs of one that it may not import.
    after_period : mapping of str to str
        Options of a job file that ask for something around a period, as in ``output.report``, or ``*`` for every job:
        subclasses of `jobs.steps.PeriodStep`.
    """

    commands: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)
    engines: Mapping[str, str] = field(default_factory=dict)
    views: Mapping[str, str] = field(default_factory=dict)
    after_period: Mapping[str, str] = field(default_factory=dict)


@cache
def plugins() -> Mapping[str, Plugin]:
    """Return the plugins of all installed packages, by the names of their entry points, in alphabetical order.

    Raises `ConfigError` if one cannot be loaded, or two packages name a plugin, or add a name to a hook, alike.
    """
    from importlib.metadata import entry_points

    loaded: dict[str, Plugin] = {}
    owners: dict[tuple[str, str], str] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        package = "" if point.dist is None else f" of the package {point.dist.name!r}"
        problem, plugin = "is no pkdp_pipeline.plugins.Plugin", None
        try:
            plugin = point.load()
        except Exception as error:  # of another package, which may break in any way
            problem = f"cannot be loaded ({type(error).__name__})"
        if not isinstance(plugin, Plugin):
            raise ConfigError(f"the plugin {point.name!r}{package} {problem}: update that package, or uninstall it.")
        if point.name in loaded:
            raise ConfigError(f"two packages name a plugin {point.name!r}: uninstall one; the last is that{package}.")
        for kind in fields(Plugin):
            for name in getattr(plugin, kind.name):
                # Every job may have steps of several packages.
                if name != "*" and owners.setdefault((kind.name, name), point.name) != point.name:
                    raise ConfigError(
                        f"the plugins {owners[kind.name, name]!r} and {point.name!r} both add {name!r} to {kind.name}: "
                        "uninstall one of them."
                    )
        loaded[point.name] = plugin
    return MappingProxyType(loaded)


def hooks(kind: Kind) -> Iterator[tuple[str, str]]:
    """Yield what plugins add of a kind: each name, and where its object is."""
    for plugin in plugins().values():
        yield from getattr(plugin, kind).items()


def load(place: str) -> Any:
    """Return the object at ``module:object``.

    Raises `ConfigError` if its module needs a package that is not installed.
    """
    module, _, name = place.partition(":")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        missing = error.name
    raise ConfigError(f"{module} needs the package {missing}, which is not installed: install it.")


def hook(kind: Kind, name: str) -> Any:
    """Return what a plugin adds under a name. Raises `ConfigError` if none does, or it needs what is not installed."""
    place = dict(hooks(kind)).get(name)
    if place is None:
        raise ConfigError(
            f"no installed package adds {name!r} to {kind} of pkdp_pipeline: install the one that does; where it is "
            "part of pkdp_pipeline, install pkdp-pipeline itself again, with pip."
        )
    return load(place)


def view(name: str) -> Any:
    """Return the function that draws, prints or reads a value; see `hook`."""
    return hook("views", name)

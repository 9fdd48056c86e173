"""A look at a plugin's source: what it says of itself, without running a line of it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from typing import cast

from ..plugins._loading import api_problem
from ..plugins._text import told

__all__ = ["Look", "look_at", "variables_of"]


@dataclass(frozen=True, slots=True)
class Look:
    """What the source of a plugin's module says.

    Attributes:
        problem: Why it cannot be loaded; empty when nothing speaks against it.
        incompatible: Whether the problem is its `PLUGIN_API`.
        environment: The variables that it names in `ENVIRONMENT`; `None` when the
            source does not say.
    """

    problem: str = ""
    incompatible: bool = False
    environment: tuple[str, ...] | None = None


def look_at(value: str) -> Look:
    """Look at the module of an entry point's value.

    What can only be known by running it, such as a computed `PLUGIN_API`, is left open.
    """
    module, _, attribute = (part.strip() for part in value.partition(":"))
    found = _tree_of(module)
    if isinstance(found, str):
        return Look(found)
    if found is None:
        return Look()
    said = _literals(found)
    environment = variables_of(said.get("ENVIRONMENT"))
    # An object may have a PLUGIN_API of its own, which goes before its module's.
    if "PLUGIN_API" in said and not attribute:
        problem = api_problem(said["PLUGIN_API"])
        if problem:
            return Look(problem, incompatible=True, environment=environment)
    return Look(environment=environment)


def _tree_of(module: str) -> ast.Module | str | None:
    """Return a module's syntax tree, why there is none, or `None`: it does not say."""
    if not all(part.isidentifier() for part in module.split(".")):
        return f"{module!r} is no module's name"
    try:
        spec = _spec_of(module)
    except Exception:  # noqa: BLE001 - finders of others, nested namespace packages
        return None
    if spec is None:
        return f"there is no module {module!r}: is its code still installed?"
    get_source = getattr(spec.loader, "get_source", None)
    try:
        source = get_source(module) if get_source else None
        return ast.parse(source) if isinstance(source, str) else None
    except (ImportError, SyntaxError, ValueError, RecursionError) as error:
        return f"its source cannot be read: {told(error)}"


def variables_of(given: object) -> tuple[str, ...] | None:
    """Return the names in an `ENVIRONMENT`, `None` when it is not a tuple or list."""
    if not isinstance(given, tuple | list):
        return None
    names = cast("Sequence[object]", given)
    return tuple(name for name in names if isinstance(name, str) and name)


def _spec_of(module: str) -> ModuleSpec | None:
    """Find a module as the import system would, but without importing its parents."""
    path: Sequence[str] | None = None
    spec: ModuleSpec | None = None
    parts = module.split(".")
    for number in range(1, len(parts) + 1):
        spec = _find(".".join(parts[:number]), path)
        if spec is None:
            return None
        locations = spec.submodule_search_locations
        if number < len(parts) and locations is None:
            return None
        path = None if locations is None else list(locations)
    return spec


def _find(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    for finder in sys.meta_path:
        find_spec = getattr(finder, "find_spec", None)
        spec = find_spec(name, path) if find_spec else None
        if isinstance(spec, ModuleSpec):
            return spec
    return None


def _literals(tree: ast.Module) -> dict[str, object]:
    """Return the top-level names that are assigned plain values."""
    found: dict[str, object] = {}
    for node in tree.body:
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        if not targets or not isinstance(node, ast.Assign | ast.AnnAssign):
            continue
        for target in targets:
            if isinstance(target, ast.Name) and node.value is not None:
                found.pop(target.id, None)
                try:
                    found[target.id] = ast.literal_eval(node.value)
                except (ValueError, TypeError, SyntaxError, RecursionError):
                    continue  # computed: only running it tells
    return found

"""Small mistakes, put into a module one at a time: the mutants of a mutation run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import cast

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.Div,
}
_WIDTH = 100  # of a mutant's text
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutant:
    """One mistake.

    Attributes:
        module: The module's name.
        function: The qualified name of the outermost function that it is in; empty for
            a constant of the module.
        lines: The lines that a test must run to meet it.
        text: What was changed, e.g. `"a < b -> a <= b"`.
        code: The function's code with the mistake, or the constant's value.
        name: The constant's name.
    """

    module: str
    function: str
    lines: range
    text: str
    code: object
    name: str = ""

    @property
    def key(self) -> str:
        """What names the mutant, whatever else changes in the module."""
        return f"{self.module} {self.function or self.name}: {self.text}"

    def put_in(self, module: ModuleType) -> None:
        """Make the mistake in a module that is imported, for all who hold its parts."""
        if self.name:
            setattr(module, self.name, self.code)
            return
        found: object = module
        for part in self.function.split("."):
            found = vars(found)[part]
        if isinstance(found, property):
            found = found.fget
        if isinstance(found, staticmethod | classmethod):
            found = found.__func__
        cast("FunctionType", found).__code__ = cast("CodeType", self.code)


def mutants_of(source: str, module: str, path: str) -> Iterator[Mutant]:
    """Yield each mutant of a module's functions and of its plain constants."""
    tree = ast.parse(source)
    for node in tree.body:
        yield from _constants(node, module)
    for name, function in _functions(tree):
        for place in _places(function):
            for new in _mistakes(place):
                lines, text = place.lines(), f"{_text(place.node)} -> {_text(new)}"
                place.put(new)
                code = compile(ast.fix_missing_locations(tree), path, "exec")
                place.put(place.node)
                yield Mutant(module, name, lines, text, _find(code, name))


def _constants(node: ast.stmt, module: str) -> Iterator[Mutant]:
    match node:
        case ast.Assign(
            targets=[ast.Name(name)], value=ast.Constant(int() | bytes() as value)
        ):
            other = value + b"X" if isinstance(value, bytes) else value + 1
            text = f"{value!r} -> {other!r}"
            yield Mutant(module, "", range(0), text, other, name)


def _functions(tree: ast.Module) -> Iterator[tuple[str, _Function]]:
    for node in tree.body:
        if isinstance(node, _Function):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, _Function):
                    yield f"{node.name}.{inner.name}", inner


def _find(code: CodeType, name: str) -> CodeType:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_qualname == name:
                return each
            if name.startswith(each.co_qualname + "."):
                return _find(each, name)
    raise LookupError(name)


@dataclass(frozen=True)
class _Place:
    """A node, and where it hangs."""

    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None
    statement: ast.stmt

    def put(self, new: ast.AST) -> None:
        if self.index is None:
            setattr(self.parent, self.field, new)
        else:
            getattr(self.parent, self.field)[self.index] = new

    def lines(self) -> range:
        """The lines that run the mistake: a statement's own, without its body's."""
        last = self.node if isinstance(self.node, ast.expr) else self.statement
        if isinstance(getattr(last, "body", None), list):
            return range(self.statement.lineno, self.statement.lineno + 1)
        return range(self.statement.lineno, (last.end_lineno or last.lineno) + 1)


def _places(function: _Function) -> Iterator[_Place]:
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]  # the docstring
    for statement in body:
        index = function.body.index(statement)
        yield from _below(_Place(statement, function, "body", index, statement))


def _below(place: _Place) -> Iterator[_Place]:
    yield place
    node = place.node
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "format_spec", "decorator_list", "ctx"}:
            continue
        if isinstance(node, ast.Call) and _text(node.func) == "cast" and value:
            value = value[1:] if field == "args" else value  # noqa: PLW2901
        children = value if isinstance(value, list) else [value]
        offset = len(getattr(node, field)) - len(children) if children is value else 0
        for number, child in enumerate(children):
            if isinstance(child, ast.AST):
                index = number + offset if isinstance(value, list) else None
                statement = child if isinstance(child, ast.stmt) else place.statement
                yield from _below(_Place(child, node, field, index, statement))


def _mistakes(place: _Place) -> Iterator[ast.AST]:
    node = place.node
    if isinstance(node, ast.stmt):
        yield from _in_statement(node)
    elif isinstance(node, ast.expr):
        yield from _in_expression(node)
        yield from _of_part(place)


def _in_statement(node: ast.stmt) -> Iterator[ast.AST]:  # noqa: C901 - one table
    match node:
        case ast.Expr(ast.Call() | ast.Await()) | ast.Raise() | ast.Delete():
            yield ast.Pass()
        case ast.Return(None):
            yield ast.Pass()
        case ast.Return(value) if not _is_none(value):
            yield ast.Return(ast.Constant(None))
        case ast.Assign(targets, value) if not _is_flag(value):
            yield ast.Assign(targets, ast.Constant(None))
        case ast.AnnAssign(target, _, ast.expr() as value) if not _is_flag(value):
            yield ast.Assign([target], ast.Constant(None))
        case ast.AugAssign(target, op, value):
            if other := _ARITHMETIC.get(type(op)):
                yield ast.AugAssign(target, other(), value)
            yield ast.Assign([target], value)
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.With(items, body) | ast.AsyncWith(items, body) if not any(
            each.optional_vars for each in items
        ):
            yield ast.If(ast.Constant(value=True), body, [])
        case _:
            pass


def _in_expression(node: ast.expr) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(left, ops, others):
            for index, op in enumerate(ops):
                changed = [*ops[:index], _COMPARISONS[type(op)](), *ops[index + 1 :]]
                yield ast.Compare(left, changed, others)
        case ast.BoolOp(op, values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield operand
        case ast.BinOp(left, op, right) if type(op) in _ARITHMETIC:
            yield ast.BinOp(left, _ARITHMETIC[type(op)](), right)
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield ast.Constant(value + 1)
        case ast.Constant(str() as value):
            yield ast.Constant(f"XX{value}XX")
        case ast.Constant(bytes() as value):
            yield ast.Constant(b"XX" + value)
        case _:
            pass


def _of_part(place: _Place) -> Iterator[ast.AST]:
    """Yield what is wrong for the place where an expression stands."""
    node, parent, field = place.node, place.parent, place.field
    if field in {"test", "ifs"} and not isinstance(
        node, ast.Compare | ast.BoolOp | ast.UnaryOp
    ):
        yield ast.UnaryOp(ast.Not(), cast("ast.expr", node))
    argument = isinstance(parent, ast.Call) and field == "args"
    keyword = isinstance(parent, ast.keyword)
    if (argument or keyword) and not (_is_none(node) or isinstance(node, ast.Starred)):
        yield ast.Constant(None)


def _is_none(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_flag(node: ast.AST) -> bool:
    """Tell whether it is None, or a constant that another mistake changes already."""
    return isinstance(node, ast.Constant) and node.value in {None, 0, 1}


def _text(node: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(node)).split("\n")[0]
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."

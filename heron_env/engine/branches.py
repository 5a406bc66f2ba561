"""Functions without branches: `if` becomes a mask and a select, so that one text serves many environments at once.

A function that is converted takes one argument more, `mask_`: where it is in force. Under a mask `x = e` becomes
`x = where(mask, e, x)`; `return` and `continue` in some environments take these out of the mask of what follows;
`a if c else b` becomes a select, `and`, `or` and `not` work on masks. What these words mean (`where`, `both`, ...) is
the caller's: vectors of numbers in compiled code, or arrays that JAX traces. Nothing is edited in rules.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any

from heron_env.engine.checking import library
from heron_env.errors import RuleError

MASK = "mask_"
LIVE, RETURNED, GOING = "live_", "returned_", "going_"
"""Names in converted text: who has not returned, what is returned, who is still in this turn of a loop."""
OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "lshift", ast.RShift: "rshift",
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
    ast.USub: "neg", ast.Invert: "invert",
}  # fmt: skip
DIVIDING = ("div", "floordiv", "mod")
"""These take the mask, too."""


class Converter:
    """Converts functions, and those that they call.

    Args:
        words: what the words in converted text mean: `ALL` (a mask), `UNSET` (no value), `where`, `item`, `store`,
            `both`, `either`, `negated`, `truth_of`, `any_of`; `loop`, or, with `compile`, the OPERATORS.
        values: by identity, what stands in the place of a function, module or number that a function names.
        compile: of a converted function; operators are words then, and a `while` stays one.
        masked: functions of `values` that take the mask, too.
    """

    def __init__(
        self, words: Mapping[str, Any], values: Sequence[tuple[Any, Any]], compile: Callable[[Any], Any] | None = None,
        masked: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        self.words, self._referenced = {f"{word}__": meaning for word, meaning in words.items()}, list[Any](values)
        self.compile, self._masked = compile, [id(value) for value in masked]
        self._values = {id(value): stands for value, stands in values}
        self._made: dict[int, Callable[..., Any]] = {}

    def value(self, value: Any) -> Any:
        """What stands in the place of this one."""
        if id(value) in self._values:
            return self._values[id(value)]
        function = getattr(value, "py_func", value)  # of a compiled one
        if isinstance(function, FunctionType) and not library(function):
            return self.function(function)
        if isinstance(value, ModuleType) and not library(value):
            return _Module(self, value)
        return value

    def function(self, function: FunctionType) -> Callable[..., Any]:
        """The converted function. Raises RuleError naming what can't be converted, with its line."""
        if id(function) not in self._made:
            space: dict[str, Any] = {**self.words}
            self._referenced.append(function)
            self._made[id(function)] = lambda *args: space[function.__name__](*args)  # while it calls itself
            code, names = self._text(function)
            closed = inspect.getclosurevars(function).nonlocals
            for name in names:
                if name in closed or name in function.__globals__:
                    space[name] = self.value(closed.get(name, function.__globals__.get(name)))
                elif hasattr(builtins, name):  # numba knows them by their names
                    space[f"{name}__"] = self.value(getattr(builtins, name))
            exec(code, space)
            made = space[function.__name__]
            self._made[id(function)] = made if self.compile is None else self.compile(made)
        return self._made[id(function)]

    def _text(self, function: FunctionType) -> tuple[Any, set[str]]:
        code = function.__code__
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        except (OSError, TypeError, SyntaxError) as error:
            raise RuleError(f"{function.__qualname__}: its source can't be read ({error})") from error
        ast.increment_lineno(tree, code.co_firstlineno - 1)
        definition = tree.body[0]
        if not isinstance(definition, ast.FunctionDef):
            raise RuleError(f"{code.co_filename}:{code.co_firstlineno}: write it as `def`; a lambda can't be converted")
        parts = [*definition.body, *definition.args.defaults]
        names = {node.id for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}
        _Body(self, function).convert(definition)
        ast.fix_missing_locations(tree)
        return compile(tree, code.co_filename, "exec"), names

    def stands(self, value: Any) -> bool:
        """Does something stand in its place?"""
        return id(value) in self._values

    def converts(self, value: Any) -> bool:
        """Does what stands for it take a mask?"""
        if id(value) in self._values or id(value) in self._masked:
            return id(value) in self._masked
        function = getattr(value, "py_func", value)
        return isinstance(function, FunctionType) and not library(function)


class _Module:
    """A module whose functions are converted when they are asked for."""

    def __init__(self, converter: Converter, module: ModuleType) -> None:
        self._converter, self._module = converter, module

    def __getattr__(self, name: str) -> Any:
        return self._converter.value(getattr(self._module, name))


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _call(word: str, *args: ast.expr) -> ast.Call:
    return ast.Call(_name(f"{word}__"), list(args), [])


def _all() -> ast.expr:
    return _name("ALL__")


def _set(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


class _Body(ast.NodeTransformer):
    """Converts one definition in place."""

    def __init__(self, converter: Converter, function: FunctionType) -> None:
        self._converter, self._function, self._count = converter, function, 0
        self._mask: ast.expr = _name(MASK)
        self._choices = 0
        """Conditions around: without any, nobody reads later what variables were where the mask does not hold."""
        self._loops: list[str] = []
        self._before: list[ast.stmt] = []
        """What goes before the statement that is converted now: conditions within its expressions."""

    def convert(self, definition: ast.FunctionDef) -> None:
        """Body and arguments; decorators and annotations go."""
        assigned = sorted(_assigned(definition.body) - {arg.arg for arg in definition.args.args})
        definition.decorator_list, definition.returns = [], None
        for argument in definition.args.args:
            argument.annotation = None
        definition.args.args.append(ast.arg(MASK))
        definition.args.defaults = [*map(self.visit, definition.args.defaults), _all()]
        self._nodes = [node for statement in definition.body for node in ast.walk(statement)]
        body = self._block(definition.body)
        start = [_set(LIVE, _all()), _set(RETURNED, _name("UNSET__"))]
        start += [_set(name, _name("UNSET__")) for name in assigned]
        returns = any(isinstance(node, ast.Return) and node.value is not None for node in self._nodes)
        definition.body = [*start, *body, ast.Return(_name(RETURNED) if returns else ast.Constant(None))]

    def _refuse(self, node: ast.AST, reason: str) -> RuleError:
        place = f"{self._function.__code__.co_filename}:{getattr(node, 'lineno', 0)}"
        return RuleError(f"{place}: `{ast.unparse(node).splitlines()[0]}`: {reason}")

    def _new(self, what: str) -> str:
        self._count += 1
        return f"{what}_{self._count}_"

    # Statements

    def _block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements one after another; those behind one that some leave are for the others only."""
        made: list[ast.stmt] = []
        for k, statement in enumerate(statements):
            around, self._before = self._before, []
            converted = self._statement(statement)
            made += [*self._before, *converted]
            self._before = around
            if _leaves(statement) and k + 1 < len(statements):
                left = _call("both", self._mask, self._still())
                made += self._under(left, statements[k + 1 :], choice=bool(self._loops))
                break
        return made or [ast.Pass()]

    def _still(self) -> ast.expr:
        """Who has neither returned nor gone on to the next turn of the loop."""
        return _call("both", _name(LIVE), _name(self._loops[-1])) if self._loops else _name(LIVE)

    def _under(self, condition: ast.expr, statements: Sequence[ast.stmt], choice: bool = True) -> list[ast.stmt]:
        """The statements where the condition holds; `choice`: where it does not, variables stay what they are."""
        if not statements:
            return []
        outer, name = self._mask, self._new("m")
        self._mask = _name(name)
        self._choices += choice
        body = self._block(statements)
        self._choices -= choice
        self._mask = outer
        return [_set(name, condition), ast.If(_call("any_of", _name(name)), body, [])]

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.Assert(test) if "fail_where__" in self._converter.words:
                fails = _call("both", self._mask, _call("negated", _call("truth_of", self.visit(test))))
                return [ast.copy_location(ast.Expr(_call("fail_where", fails)), node)]
            case ast.Pass() | ast.Import() | ast.ImportFrom() | ast.Assert():
                return []
            case ast.Expr(value):
                return [] if isinstance(value, ast.Constant) else [ast.copy_location(ast.Expr(self.visit(value)), node)]
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                return [ast.copy_location(made, node) for made in self._assignment(node)]
            case ast.Return(value):
                returned = ast.Constant(None) if value is None else self.visit(value)
                return [
                    _set(RETURNED, _call("where", self._mask, returned, _name(RETURNED))),
                    _set(LIVE, _call("both", _name(LIVE), _call("negated", self._mask))),
                ]
            case ast.Continue():
                gone = _call("both", _name(self._loops[-1]), _call("negated", self._mask))
                return [_set(self._loops[-1], gone)]
            case ast.If(test, body, orelse):
                holds = self._new("c")
                return [
                    ast.copy_location(_set(holds, _call("truth_of", self.visit(test))), node),
                    *self._under(_call("both", self._mask, _name(holds)), body),
                    *self._under(_call("both", self._mask, _call("negated", _name(holds))), orelse),
                ]
            case ast.For(target, over, body, []):
                return [self._for(node, target, self.visit(over), body)]
            case ast.While(test, body, []):
                return self._while(test, body)
        raise self._refuse(node, "this statement can't be converted; write it with if, for, while and assignments")

    def _for(self, node: ast.For, target: ast.expr, over: ast.expr, body: Sequence[ast.stmt]) -> ast.stmt:
        going = self._new(GOING)
        self._loops.append(going)
        inner = [_set(going, _all())]
        if any(_leaves(statement) for statement in body):
            inner += self._under(_call("both", self._mask, _name(LIVE)), body)
        else:
            inner += self._block(body)
        self._loops.pop()
        return ast.copy_location(ast.For(target, over, inner, []), node)

    def _while(self, test: ast.expr, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """`loop(condition, turn, values)` over what the body assigns."""
        for statement in body:
            if _leaves(statement):
                raise self._refuse(statement, "a `while` can't be left from within; say it in its condition")
        if self._converter.compile is not None:
            again = self._new("m")
            outer, self._mask = self._mask, _name(again)
            self._choices += 1
            around, self._before = self._before, []
            first = _set(again, _call("both", _name(again), _call("truth_of", self.visit(test))))
            stop = ast.If(ast.UnaryOp(ast.Not(), _call("any_of", _name(again))), [ast.Break()], [])
            made = ast.While(ast.Constant(True), [*self._before, first, stop, *self._block(body)], [])
            self._before = around
            self._choices -= 1
            self._mask = outer
            return [_set(again, outer), made]
        names = sorted(_assigned(body) | _written(body))
        outer, holds, turn, mask = self._mask, self._new("holds"), self._new("turn"), self._new("m")
        arguments = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
        self._mask = _name(mask)
        around, self._before = self._before, []
        condition = self.visit(test)
        before, self._before = self._before, around
        self._choices += 1
        inner = self._block(body)
        self._choices -= 1
        self._mask = outer
        values = ast.Tuple([_name(name) for name in names], ast.Load())
        targets = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
        with_mask = ast.arguments([], [*arguments.args, ast.arg(mask)], None, [], [], None, [])
        return [
            _set(mask, outer),
            _function(holds, arguments, [*before, ast.Return(condition)]),
            _function(turn, with_mask, [*inner, ast.Return(values)]),
            ast.Assign([targets], _call("loop", _name(holds), _name(turn), values, outer)),
        ]

    def _assignment(self, node: Any) -> list[ast.stmt]:
        if isinstance(node, ast.AugAssign):
            read: Any = ast.parse(ast.unparse(node.target), mode="eval").body
            value: ast.expr = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
            targets: list[ast.expr] = [node.target]
        else:
            if node.value is None:
                return []
            value, targets = node.value, node.targets if isinstance(node, ast.Assign) else [node.target]
        if len(targets) == 1 and isinstance(targets[0], ast.Name):
            return self._store(targets[0], self.visit(value))
        if len(targets) == 1 and isinstance(value, ast.Tuple) and isinstance(targets[0], ast.Tuple):
            names = [self._new("v") for _ in value.elts]
            made = [_set(name, self.visit(part)) for name, part in zip(names, value.elts, strict=True)]
            for part, name in zip(targets[0].elts, names, strict=True):
                made += self._store(part, _name(name))
            return made
        temporary = self._new("v")
        made = [_set(temporary, self.visit(value))]
        for target in targets:
            made += self._store(target, _name(temporary))
        return made

    def _store(self, target: ast.expr, value: ast.expr) -> list[ast.stmt]:
        match target:
            case ast.Name(name):
                return [_set(name, _call("where", self._mask, value, _name(name)) if self._choices else value)]
            case ast.Tuple(parts) | ast.List(parts):
                made: list[ast.stmt] = []
                for k, part in enumerate(parts):
                    made += self._store(part, _call("item", value, ast.Constant(k)))
                return made
            case ast.Subscript(array, index):
                stored = _call("store", self.visit(array), self.visit(index), value, self._mask)
                if isinstance(array, ast.Name):
                    return [_set(array.id, stored)]
                return [ast.Expr(stored)]
        raise self._refuse(target, "only names and elements of arrays can be assigned")

    # Expressions

    def visit_Name(self, node: ast.Name) -> ast.expr:
        defined = node.id in self._function.__code__.co_varnames or self._named(node) is not None
        if defined or not self._converter.stands(getattr(builtins, node.id, None)):
            return node
        return ast.copy_location(_name(f"{node.id}__"), node)

    def visit_Slice(self, node: ast.Slice) -> ast.expr:
        parts = [
            ast.Constant(None) if part is None else self.visit(part) for part in (node.lower, node.upper, node.step)
        ]
        return ast.Call(_name("slice"), parts, [])

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        return ast.copy_location(_call("item", self.visit(node.value), self.visit(node.slice)), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        outer, holds = self._mask, self._new("c")
        test = _call("truth_of", self.visit(node.test))
        self._before.append(_set(holds, test))
        self._mask = _call("both", outer, _name(holds))
        body = self.visit(node.body)
        self._mask = _call("both", outer, _call("negated", _name(holds)))
        orelse = self.visit(node.orelse)
        self._mask = outer
        return ast.copy_location(_call("where", _name(holds), body, orelse), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        outer, conjunction = self._mask, isinstance(node.op, ast.And)
        truths = all(map(_is_truth, node.values))
        made: ast.expr = self.visit(node.values[0])
        for value in node.values[1:]:
            left, holds = self._new("v"), self._new("c")
            self._before += [_set(left, made), _set(holds, _call("truth_of", _name(left)))]
            goes_on = _name(holds) if conjunction else _call("negated", _name(holds))
            self._mask = _call("both", self._mask, goes_on)
            other = self.visit(value)
            if truths:
                made = _call("both" if conjunction else "either", _name(holds), _call("truth_of", other))
            else:
                made = _call("where", goes_on, other, _name(left))
        self._mask = outer
        return ast.copy_location(made, node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if isinstance(node.op, ast.Not):
            return ast.copy_location(_call("negated", _call("truth_of", self.visit(node.operand))), node)
        if isinstance(node.operand, ast.Constant):  # numba looks for numbers that are written out
            return node
        operand = self.visit(node.operand)
        return ast.copy_location(self._operator(node.op, ast.UnaryOp(node.op, operand), operand), node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return ast.copy_location(self._operator(node.op, node, node.left, node.right), node)

    def _operator(self, operator: ast.AST, plain: ast.expr, *operands: ast.expr) -> ast.expr:
        """The word for an operator, where there is one."""
        word = OPERATORS.get(type(operator)) if self._converter.compile is not None else None
        if word is None or all(isinstance(operand, ast.Constant) for operand in operands):
            return plain
        return _call(word, *operands, *([self._mask] if word in DIVIDING else []))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        parts = [self.visit(part) for part in (node.left, *node.comparators)]
        made: ast.expr | None = None
        for k, operator in enumerate(node.ops):
            pair = parts[k], parts[k + 1]
            one = self._operator(operator, ast.Compare(pair[0], [operator], [pair[1]]), *pair)
            made = one if made is None else _call("both", made, one)
        assert made is not None
        return ast.copy_location(made, node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name) and node.func.id in self._function.__code__.co_varnames:
            raise self._refuse(node, "a function that is a variable can't be converted; call it by its own name")
        named = self._named(node.func) or getattr(builtins, getattr(node.func, "id", ""), None)
        converts = self._converter.converts(named)
        if named in (min, max) and len(node.args) > 2 and self._converter.compile is not None:  # two at a time
            node.args = [ast.copy_location(ast.Call(node.func, node.args[:-1], []), node), node.args[-1]]
        self.generic_visit(node)
        if converts:
            node.keywords.append(ast.keyword(MASK, self._mask))
        return node

    def visit(self, node: ast.AST) -> Any:
        """Raises RuleError for what makes functions or loops within an expression."""
        if isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            remedy = "function of its own" if isinstance(node, ast.Lambda) else "loop"
            raise self._refuse(node, f"write it as a {remedy}")
        return super().visit(node)

    def _named(self, node: ast.expr) -> Any:
        """The value that a name or `module.name` stands for, if it comes from outside."""
        if isinstance(node, ast.Name):
            closed = inspect.getclosurevars(self._function).nonlocals
            return closed.get(node.id, self._function.__globals__.get(node.id))
        if isinstance(node, ast.Attribute):
            module = self._named(node.value)
            return getattr(module, node.attr, None) if isinstance(module, ModuleType) else None
        return None


def _is_truth(node: ast.expr) -> bool:
    """Is this true or false by its form?"""
    if isinstance(node, ast.BoolOp):
        return all(map(_is_truth, node.values))
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _function(name: str, arguments: ast.arguments, body: list[ast.stmt]) -> ast.stmt:
    made = ast.parse(f"def {name}(): pass").body[0]
    assert isinstance(made, ast.FunctionDef)
    made.args, made.body = arguments, body
    return made


def _assigned(statements: Sequence[ast.stmt]) -> set[str]:
    """Names that these statements assign, but for those that loops count with."""
    walked = [node for statement in statements for node in ast.walk(statement)]
    stored = {node.id for node in walked if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    counting = {
        name.id
        for node in walked
        if isinstance(node, ast.For)
        for name in ast.walk(node.target)
        if isinstance(name, ast.Name)
    }
    return stored - counting


def _written(statements: Sequence[ast.stmt]) -> set[str]:
    """Names of arrays whose elements these statements assign."""
    walked = [node for statement in statements for node in ast.walk(statement) if isinstance(node, ast.Subscript)]
    return {node.value.id for node in walked if isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name)}


def _leaves(statement: ast.stmt) -> bool:
    """May some environments leave the block here: by return, or continue of a loop around it?"""
    if isinstance(statement, ast.Return | ast.Continue):
        return True
    if isinstance(statement, ast.For):
        return any(isinstance(node, ast.Return) for node in ast.walk(statement))
    return any(_leaves(child) for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt))

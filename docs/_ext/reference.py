"""The reference, docs/api: a page names public names, and this writes their entries from the library and its programs.

A page holds blocks of names, `heron_env.lab.PUBLIC` decides which there are, tests/test_docs.py that none is missing:

    ```{names} heron_env.lab
    Sweep SweepResult
    ```

`*` stands for all names of the module. An entry has the signature with types, the docstring, a link to the source, the
members, an example (the docstring's, or that of docs/_ext/examples, or from a page), and the pages that use the name.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from heron_env.lazily import PUBLIC

DOCS: Final = Path(__file__).parents[1]
ROOT: Final = DOCS.parent
EXAMPLES: Final = DOCS / "_ext" / "examples"
"""Files of doctests: `# heron_env.files.write heron_env.files.write_all`, then what runs; `# A B -> C`: C shows it."""
BLOCK: Final = re.compile(r"^```\{names\} (\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TABLE: Final = re.compile(r"^```\{modules\}\n```$", re.MULTILINE)
CODE: Final = re.compile(r"^```py(?:thon)?\n(.*?)^```", re.DOTALL | re.MULTILINE)
GENERATED: Final = ("_build", "_ext", "_static", "notebooks", "jupyter_execute", "api")
EXAMPLE: Final = re.compile(r">>>|^Examples?:", re.MULTILINE)
APART: Final = ("heron_env.HeronEnv",)
"""Classes whose members have blocks of their own, `{names} heron_env.HeronEnv`; `*`: those in no other block."""
WITHOUT_MEMBERS: Final = ("ObservabilityConfig", "SimulationConfig", "SimulationState")
ENTRY_POINTS: Final = {
    "env": "The environment agent by agent, by PettingZoo's name.",
    "raw_env": "The same as `env`.",
    "parallel_env": "The environment, by PettingZoo's name.",
}
FEW, LONG, MOST_PAGES = 3, 12, 4
"""Members that need no list; lines of an example from a page; pages that an entry names."""

Name = tuple[str, str]
"""A public module, and a name of it."""


@functools.cache
def names_of(module: str) -> tuple[str, ...]:
    """`__all__`; off the source where the library that the module adapts is not installed."""
    try:
        names = importlib.import_module(module).__all__
    except ModuleNotFoundError:
        (listed,) = re.findall(r"^__all__ = (\[.*?\])", source(module), re.DOTALL | re.MULTILINE)
        names = ast.literal_eval(listed)
    return tuple(name for name in names if name != "__version__")


def source(module: str) -> str:
    """The text of a module of ours."""
    path = ROOT.joinpath(*module.split("."))
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")


def thing(module: str, name: str) -> Any:
    """What has this name; None where a library that it adapts is not installed."""
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError:
        return None


def is_entry(value: Any) -> bool:
    """Does its identity say that two names are one? Constants and functions bound to arguments may look alike."""
    return inspect.isclass(value) or inspect.isroutine(value)


@functools.cache
def entries() -> dict[Name, list[str]]:
    """Each entry of the reference, under the first public module that has it, with its other public addresses."""
    first: dict[int, Name] = {}
    found: dict[Name, list[str]] = {}
    for module in PUBLIC:
        for name in names_of(module):
            value = thing(module, name)
            owner = first.setdefault(id(value), (module, name)) if is_entry(value) else (module, name)
            others = found.setdefault(owner, [])
            if owner != (module, name):
                others.append(f"{module}.{name}")
    return found


def listed(text: str) -> Iterator[Name]:
    """The entries that a page shows."""
    for module, names in BLOCK.findall(text):
        for name in names.split() if module not in APART else ():
            every = [one for one in names_of(module) if (module, one) in entries()]
            yield from ((module, one) for one in (every if name == "*" else [name]))


@functools.cache
def examples() -> dict[str, str]:
    """The doctests of docs/_ext/examples by dotted name; of some the name whose entry shows how to get them."""
    found: dict[str, str] = {}
    for file in sorted(EXAMPLES.glob("*.txt")):
        for heading, body in re.findall(r"^# (.+)\n((?:(?!# ).*\n?)*)", file.read_text(encoding="utf-8"), re.MULTILINE):
            names, arrow, shown = heading.partition(" -> ")
            found |= dict.fromkeys(names.split(), shown if arrow else body.strip())
    return found


@functools.cache
def programs() -> dict[str, list[ast.Module]]:
    """The programs of pages, by page, and of examples, by path; tests run them."""
    found: dict[str, list[ast.Module]] = {}
    for page in sorted(DOCS.rglob("*.md")):
        place = page.relative_to(DOCS)
        if place.parts[0] not in GENERATED:
            found[place.with_suffix("").as_posix()] = [*parsed(CODE.findall(page.read_text(encoding="utf-8")))]
    for file in sorted((ROOT / "examples").rglob("*.py")):
        found[file.relative_to(ROOT).as_posix()] = [*parsed([file.read_text(encoding="utf-8")])]
    return found


def parsed(blocks: list[str]) -> Iterator[ast.Module]:
    """Those that are Python alone."""
    for block in blocks:
        try:
            yield ast.parse(block)
        except SyntaxError:
            continue


@functools.cache
def uses() -> dict[Name, dict[str, str]]:
    """Where programs use an entry: by place, the first statement that does, "" where it is a long one."""
    owners = {f"{module}.{name}": (module, name) for module, name in entries()}
    owners |= {other: owner for owner, others in entries().items() for other in others}
    found: dict[Name, dict[str, str]] = defaultdict(dict)
    for place, blocks in programs().items():
        known: dict[str, Name] = {}
        for block in blocks:
            for node in ast.walk(block):
                if isinstance(node, ast.ImportFrom):
                    for one in node.names:
                        if owner := owners.get(f"{node.module}.{one.name}"):
                            known[one.asname or one.name] = owner
                elif isinstance(node, ast.Attribute) and (owner := owners.get(ast.unparse(node))):
                    known[ast.unparse(node)] = owner
        for written, owner in known.items():
            found[owner].setdefault(place, next(statements(blocks, written), ""))
    return dict(found)


def statements(blocks: list[ast.Module], written: str) -> Iterator[str]:
    """Short statements of the programs with this expression, simple ones first."""
    nodes = [node for block in blocks for node in ast.walk(block) if isinstance(node, ast.stmt)]
    simple = [node for node in nodes if not hasattr(node, "body") and not isinstance(node, ast.ImportFrom | ast.Import)]
    for node in (*simple, *(node for node in nodes if hasattr(node, "body"))):
        if any(ast.unparse(one) == written for one in ast.walk(node) if isinstance(one, ast.Name | ast.Attribute)):
            text = ast.unparse(node)
            if text.count("\n") < LONG and max(map(len, text.split("\n"))) < 100:
                yield text


def own_example(value: Any) -> bool:
    """Has its docstring, or one of its members', an example?"""
    members = [one for name, one in vars(value).items() if name[0] != "_"] if inspect.isclass(value) else []
    return is_entry(value) and any(EXAMPLE.search(inspect.getdoc(one) or "") for one in (value, *members))


def has_example(module: str, name: str) -> bool:
    """Does its entry show one, or name a program that uses it?"""
    shown = examples().get(f"{module}.{name}", "")
    if shown and ">>>" not in shown:
        module, _, name = shown.rpartition(".")
        return (module, name) in entries() and has_example(module, name)
    return bool(shown) or own_example(thing(module, name)) or (module, name) in uses()


def attribute_doc(module: str, name: str) -> str:
    """The text below a constant, where it is defined."""
    tree = ast.parse(source(module)) if module.startswith("heron_env") else ast.Module([], [])
    stub = ROOT.joinpath(*module.split("."), "__init__.pyi")
    if stub.is_file():
        tree.body += ast.parse(stub.read_text(encoding="utf-8")).body
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.ImportFrom) and node.module and any(name == one.name for one in node.names):
            return attribute_doc(node.module, name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(one, ast.Name) and one.id == name for one in targets):
            text = getattr(getattr(after, "value", None), "value", "")
            return inspect.cleandoc(text) if isinstance(after, ast.Expr) and isinstance(text, str) else ""
    return ""


def shown_members(value: Any) -> list[str]:
    """Methods and properties with a docstring of their own."""
    if not inspect.isclass(value):
        return []
    members = [(name, one) for name, one in vars(value).items() if not name.startswith("_")]
    kinds = (property, functools.cached_property, classmethod, staticmethod)
    return [name for name, one in members if (inspect.isroutine(one) or isinstance(one, kinds)) and one.__doc__]


def members(dotted: str, names: str) -> list[str]:
    """The members of a class in a block of its own."""
    module, _, name = dotted.rpartition(".")
    every = [one for one in dir(thing(module, name)) if is_member(thing(module, name), one)]
    pages = [page.read_text(encoding="utf-8") for page in sorted((DOCS / "api").glob("*.md"))]
    blocks = [inner for page in pages for owner, inner in BLOCK.findall(page) if owner == dotted]
    elsewhere = {one for inner in blocks for one in inner.split()}
    shown = [one for one in every if one not in elsewhere] if names.strip() == "*" else names.split()
    return [f"{dotted}.{one}" for one in shown]


def is_member(value: Any, name: str) -> bool:
    """Is it a public method or property that heron_env defines and describes?"""
    owner = next(base for base in value.__mro__ if name in vars(base))
    one = vars(owner)[name]
    described = inspect.isroutine(one) or isinstance(one, property | functools.cached_property)
    return name[0] != "_" and owner.__module__.startswith("heron_env") and described and bool(one.__doc__)


def member_entry(dotted: str) -> list[str]:
    """The lines of a member in a block of its own."""
    owner, _, name = dotted.rpartition(".")
    one = inspect.getattr_static(thing(*owner.rsplit(".", 1)), name)
    kind = "autoproperty" if isinstance(one, property | functools.cached_property) else "automethod"
    return [f".. {kind}:: {dotted}", ""]


def links(dotted: list[str]) -> str:
    """To entries, by their last part."""
    return " · ".join(f":py:obj:`{one.rpartition('.')[2]} <{one}>`" for one in dotted)


def below(module: str, name: str, value: Any) -> Iterator[str]:
    """What an entry has below its docstring: other addresses, members, an example, pages that use it."""
    dotted, others = f"{module}.{name}", entries()[module, name]
    if others:
        yield from ("Also " + ", ".join(f"``{other}``" for other in others) + ".", "")
    inner = [] if name in WITHOUT_MEMBERS else shown_members(value)
    inner = [one for one in dir(value) if is_member(value, one)] if dotted in APART else inner
    if len(inner) > FEW:
        yield from ("Members: " + links([f"{dotted}.{one}" for one in inner]), "")
    used = uses().get((module, name), {})
    example, origin = examples().get(dotted, ""), ""
    if not example and not own_example(value):
        origin, example = next(((place, text) for place, text in used.items() if text), ("", ""))
    if example and not origin and ">>>" not in example:
        yield from (f"Example: {links([example])}", "")
    elif example:
        yield from (f".. rubric:: Example{f' (from {where(origin)})' if origin else ''}", "")
        yield from (f".. code-block:: {'python' if origin else 'pycon'}", "")
        yield from (f"   {line}" for line in example.split("\n"))
        yield ""
    if used:
        yield from ("Used in " + ", ".join(map(where, [*used][:MOST_PAGES])), "")


def where(place: str) -> str:
    """A page as a link, a file as its path."""
    return f"``{place}``" if place.endswith(".py") else f":doc:`/{place}`"


def entry(module: str, name: str) -> list[str]:
    """The lines of one entry, in reStructuredText."""
    value, dotted = thing(module, name), f"{module}.{name}"
    inner = [f"   {line}" if line else "" for line in below(module, name, value)]
    if isinstance(value, functools.partial):
        text = f"{ENTRY_POINTS[name]} It takes the options of the environment, and ``max_cycles`` for ``max_steps``."
        return [f".. py:function:: {dotted}(**options)", "", f"   {text.replace('`env`', '``env``')}", "", *inner]
    if inspect.isclass(value):
        options = [] if name in WITHOUT_MEMBERS or dotted in APART else ["   :members:"]
        options += ["   :undoc-members:"] if hasattr(value, "__members__") else []
        return [f".. autoclass:: {dotted}", *options, "", *inner]
    if inspect.isroutine(value):
        return [f".. autofunction:: {dotted}", "", *inner]
    said = attribute_doc(module, name).replace("`", "``").replace("*", r"\*")
    shown = repr(value) if len(repr(value)) < 60 else ""
    options = [f"   :type: {type(value).__name__}", *([f"   :value: {shown}"] if shown else [])]
    return [f".. py:data:: {dotted}", *options, "", *(f"   {line}" for line in said.split("\n")), "", *inner]


def in_rst(lines: list[str]) -> str:
    """As a block of a page in MyST."""
    return "\n".join(["````{eval-rst}", *lines, "````"])


def expanded(text: str) -> str:
    """A page with its entries, below a list of links to them."""
    begun = False

    def block(match: re.Match[str]) -> str:
        nonlocal begun
        shown = [entry(*one) for one in listed(match[0])]
        apart = members(match[1], match[2]) if match[1] in APART else []
        head = "" if begun else in_rst([links(apart or [".".join(one) for one in listed(text)])])
        begun = True
        return "\n\n".join(filter(None, [head, *map(in_rst, [*shown, *map(member_entry, apart)])]))

    return TABLE.sub(lambda _: modules(), BLOCK.sub(block, text))


def modules() -> str:
    """The table of public modules, with the pages that show their names."""
    pages: dict[str, list[str]] = defaultdict(list)
    for page in sorted((DOCS / "api").glob("*.md")):
        for module, _ in listed(page.read_text(encoding="utf-8")):
            if page.stem not in pages[module]:
                pages[module].append(page.stem)
    rows = ["| module | names | pages |", "|---|---|---|"]
    for module in PUBLIC:
        shown = ", ".join(f"[]({page}.md)" for page in pages[module])
        rows.append(f"| `{module}` | {len(names_of(module))} | {shown} |")
    return "\n".join(rows)


def sentence() -> str:
    """What README.md says about public names."""
    worlds = "heron_env.worlds."
    inner = [one.removeprefix("heron_env.") for one in PUBLIC[1:] if not one.startswith(worlds)]
    inner += [
        "worlds.<world>",
        *(one.removeprefix("heron_env.") for one in PUBLIC if one.startswith(worlds) and one.count(".") > 2),
    ]
    return f"`heron_env` and its modules {', '.join(f'`{one}`' for one in inner)}"


def read(app: Any, docname: str, text: list[str]) -> None:
    """Of Sphinx: a page, before it is parsed."""
    if docname.startswith("api/"):
        text[0] = expanded(text[0])


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx asks of an extension."""
    from sphinx.ext.autodoc.mock import _MockObject, mock

    _MockObject.__or__ = lambda self, other: Any  # of annotations such as Tracer | Array
    missing = mock(app.config.autodoc_mock_imports)  # for the whole build: entries and viewcode import them, too
    missing.__enter__()
    app.connect("build-finished", lambda *_: missing.__exit__(None, None, None))
    app.connect("source-read", read)
    return {"parallel_read_safe": True}

"""A YAML file whose every mistake is told with file and line, also those that are found only in its values."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final, NoReturn, TypeVar

import yaml

from heron_env.errors import ConfigError, DeclarationError, Problem, did_you_mean
from heron_env.files.models import NO_NUMBER, NO_TEXT, NO_WORD, ROW, ConfigModel
from heron_env.files.reading import HALF, HALF_CHARACTER, is_folder, read

Model = TypeVar("Model", bound=ConfigModel)
PathParts = tuple[str | int, ...]

_STR: Final = "tag:yaml.org,2002:str"
_MERGE: Final = "tag:yaml.org,2002:merge"
MOST: Final = 16 * 2**20
"""Bytes; who sees what of a thousand agents takes one in a hundred of it."""
_EXPONENT: Final = re.compile(r"([-+]?\d+)(\.\d*)?[eE]([-+]?)(\d+)")


@dataclass(frozen=True)
class YamlFile:
    """What a file says: `data` as plain Python values, `root` the same as nodes that know their lines."""

    name: str
    data: dict[object, object]
    root: yaml.MappingNode

    @classmethod
    def read(cls, path: str | Path) -> "YamlFile":
        """Read a file. Raises ConfigError: no such file, a folder, not UTF-8, and what `parse` raises."""
        if not isinstance(path, str | PathLike) or not str(path):
            raise ConfigError(f"{path!r} is no path of a YAML file; write 'world.yaml' or a Path")
        path = Path(path)
        try:
            content = read(path, MOST).decode("utf-8")
        except FileNotFoundError:
            beside = [other.name for other in path.parent.glob("*")] if is_folder(path.parent) else []
            near = did_you_mean(path.name, beside) or " Correct the path"
            raise ConfigError(f"{path}: no such file.{near}") from None
        except IsADirectoryError:
            raise ConfigError(f"{path}: is a folder; name the YAML file in it") from None
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path}: is not UTF-8 (byte {error.start}); save it as UTF-8 text") from None
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path}: can't be read: {error}") from error
        return cls.parse(content, str(path))

    @classmethod
    def parse(cls, content: str, name: str) -> "YamlFile":
        """The mapping that a text holds. Raises ConfigError: bad syntax, repeated keys, looping aliases, no mapping."""
        try:
            loader = yaml.SafeLoader(content)
            root = loader.get_single_node()
            if root is None:
                raise ConfigError(f"{name}: is empty; it must hold a mapping, `key: value`")
            if not isinstance(root, yaml.MappingNode):
                kind = "a list" if isinstance(root, yaml.SequenceNode) else "a single value"
                raise ConfigError(f"{name}:{_line(root)}: must hold a mapping, `key: value`, not {kind}")
            problems = [*_flaws(root, name, (), frozenset(), set())]
            if problems:
                raise DeclarationError(problems)
            return cls(name, loader.construct_document(root), root)
        except yaml.YAMLError as error:
            _raise_syntax_error(name, error)
        except RecursionError:
            raise ConfigError(f"{name}: is nested too deeply") from None

    def build(self, model: type[Model], section: PathParts = ()) -> Model:
        """The model of the file, or of a section of it. Raises DeclarationError with file and line of each problem."""
        given: object = self.data
        for part in section:
            given = given[part]  # type: ignore[index]
        try:
            return model.model_validate(given)
        except DeclarationError as error:
            raise self.located(error, section) from None

    def located(self, error: DeclarationError, section: PathParts = ()) -> DeclarationError:
        """The same problems, of a section of this file, with file and line."""
        return DeclarationError(self._located(section, problem) for problem in error.problems)

    @contextmanager
    def locating(self, *sections: PathParts) -> Iterator[None]:
        """Raise DeclarationErrors about these sections of the file anew, with file and line."""
        try:
            yield
        except DeclarationError as error:
            raise DeclarationError(
                self._located((), problem)
                if not problem.source and any(problem.path[: len(part)] == part for part in sections)
                else problem
                for problem in error.problems
            ) from error.__cause__

    def _located(self, section: PathParts, problem: Problem) -> Problem:
        path = (*section, *problem.path)
        line, node = self._find(path)
        return Problem(path, problem.message + _trap(node, problem.message), f"{self.name}:{line}")

    def _find(self, path: PathParts) -> tuple[int, yaml.Node | None]:
        """Line of what a path leads to, and its node; of the innermost part that exists, and None, if it does not."""
        node: yaml.Node = self.root
        line = _line(node)
        for part in path:
            entry = _entry(node, part)
            if entry is None:
                return line, None
            line, node = entry
        return line, node


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _entry(node: yaml.Node, part: str | int) -> tuple[int, yaml.Node] | None:
    """Line and node of one entry; a row in its short form also has the names of its columns."""
    if isinstance(node, yaml.MappingNode):
        for key, value in reversed(node.value):  # a merged mapping (<<) stands first, and what is written here wins
            if isinstance(key, yaml.ScalarNode) and part in (key.value, repr(_constructed(key))):
                return _line(key), value if key.tag == _STR else key
    if isinstance(node, yaml.SequenceNode):
        index = ROW.index(part) if part in ROW else part
        if isinstance(index, int) and index < len(node.value):
            return _line(node.value[index]), node.value[index]
    return None


def _constructed(node: yaml.ScalarNode) -> object:
    return yaml.SafeLoader("").construct_object(node)


def _trap(node: yaml.Node | None, message: str) -> str:
    """Why YAML read a plain word as something else than it looks like, and how to write it."""
    if not isinstance(node, yaml.ScalarNode) or node.style is not None:
        return ""
    if message.startswith((NO_TEXT, NO_WORD)) and node.tag != _STR and node.value:
        return f"; YAML reads {node.value} as {_constructed(node)!r}: quote it, '{node.value}'"
    written = _EXPONENT.fullmatch(node.value)
    if message.startswith(NO_NUMBER) and node.tag == _STR and written:
        digits, decimals, sign, exponent = written.groups()
        return f"; YAML reads {node.value} as text: write {digits}{decimals or '.0'}e{sign or '+'}{exponent}"
    return ""


def _flaws(node: yaml.Node, name: str, path: PathParts, above: frozenset[int], done: set[int]) -> Iterator[Problem]:
    """What YAML itself lets pass: repeated keys, numbers as 1_0, halves of characters, aliases back to themselves."""
    if id(node) in above:
        yield Problem(path, "an alias (*) leads back to what it is part of; write it out", f"{name}:{_line(node)}")
    if id(node) in done:
        return
    done.add(id(node))
    above |= {id(node)}
    if isinstance(node, yaml.ScalarNode) and HALF.search(node.value):
        words = f"'{_printable(node.value[:80])}' has {HALF_CHARACTER}"
        yield Problem(path, f"{words}; write whole characters", f"{name}:{_line(node)}")
    elif isinstance(node, yaml.ScalarNode):
        try:
            value = _constructed(node)
        except ValueError as error:  # looks like a date or a number and is none: PyYAML lets Python's error through
            words = f"{node.value[:80]!r} can't be read: {error}; quote it if it is text"
            yield Problem(path, words, f"{name}:{_line(node)}")
        else:
            if "_" in node.value and isinstance(value, int | float):
                words = f"{node.value[:80]} is read as {value!r} by YAML: write {value!r}, or quote it if it is text"
                yield Problem(path, words, f"{name}:{_line(node)}")
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _flaws(value, name, (*path, index), above, done)
    elif isinstance(node, yaml.MappingNode):
        first: dict[tuple[str, str], yaml.Node] = {}
        for key, value in node.value:
            inside = (*path, _printable(key.value) if isinstance(key, yaml.ScalarNode) else "?")
            if key.tag != _MERGE:
                yield from _flaws(key, name, inside, above, done)
            earlier = first.setdefault((key.tag, str(key.value)), key)
            if earlier is not key:
                words = f"Duplicate key {_printable(str(key.value))!r}, see line {_line(earlier)}; keep one"
                yield Problem(inside, words, f"{name}:{_line(key)}")
            yield from _flaws(value, name, inside, above, done)


def _printable(text: str) -> str:
    """The text, with escapes for what can't be printed."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _raise_syntax_error(name: str, error: yaml.YAMLError) -> NoReturn:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    place = f"{name}:{mark.line + 1}" if mark is not None else name
    words = getattr(error, "problem", None) or str(error).partition("\n")[0]
    remedy = "; YAML indents with blanks, replace the tab" if "'\\t'" in words else ""
    raise ConfigError(f"{place}: is no valid YAML: {words}{remedy}") from error

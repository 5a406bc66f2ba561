"""The environment under examination: how to build it, here and in another process."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from heron_env import registry
from heron_env.envs.base import HeronEnv
from heron_env.errors import ConfigError, did_you_mean
from heron_env.registry import imported_module

Target = str | HeronEnv | Callable[..., HeronEnv]


@dataclass(frozen=True)
class Subject:
    """What a check may ask for.

    Attributes:
        name: as the user gave it.
        factory: builds a fresh environment; takes `options` and more.
        reference: "module:attribute" of the factory, None if another process can't import it, for `no_reference`.
        options: of the factory.
        seed: of all episodes.
        steps: length of a rollout in control steps.
        timeout: for other processes, s.
    """

    name: str
    factory: Callable[..., HeronEnv]
    reference: str | None = None
    no_reference: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    steps: int = 24
    timeout: float = 60.0

    def build(self, **more: Any) -> HeronEnv:
        """A fresh environment."""
        return self.factory(**{**self.options, **more})


def in_python(env: HeronEnv, *, compile: bool = False) -> HeronEnv:
    """The same environment, its rules in plain Python, so that a check can step in between; or compiled."""
    if env.compiled != compile:
        kept, env._compile = env.get_state(), compile
        env._build()
        env.set_state(kept)
    return env


def resolve(target: Target, options: Mapping[str, Any]) -> Subject:
    """The subject behind an id, "module:attribute", factory or environment.

    Raises ConfigError or UnknownEnvironment where the target is none of them, ConfigError for an unknown option.
    """
    given = dict(options)
    if isinstance(target, HeronEnv):
        return _of_instance(target, f"{type(target).__name__} object", given)
    if isinstance(target, str) and ":" in target:
        found = load(target)
        if isinstance(found, HeronEnv):
            return _of_instance(found, target, given)
        return _accepting(Subject(target, found, target, options=given))
    if isinstance(target, str):
        spec = registry.spec(target)
        if "max_cycles" in given:
            given["max_steps"] = given.pop("max_cycles")
        known = {**spec.options, **given}
        if isinstance(spec.entry_point, str):
            return _accepting(Subject(target, load(spec.entry_point), spec.entry_point, options=known))
        return _accepting(Subject(target, spec.entry_point, *importable(spec.entry_point), options=known))
    if not callable(target):
        raise ConfigError(
            f"check_env({target!r}): give an id, 'module:attribute', a function that builds the environment, or one"
        )
    return _accepting(
        Subject(getattr(target, "__qualname__", repr(target)), target, *importable(target), options=given)
    )


def _accepting(subject: Subject) -> Subject:
    """The subject, if its factory takes its options."""
    known = parameters_of(subject.factory)
    if known is None or any(p.kind is p.VAR_KEYWORD for p in known.values()):
        return subject
    for name in subject.options:
        if name not in known:
            near = did_you_mean(name, known)
            raise ConfigError(f"{subject.name} has no option {name!r}; it takes {list(known)}.{near}")
    return subject


def load(reference: str) -> Any:
    """The factory, class or environment at "module:attribute". Raises ConfigError."""
    name, _, attribute = reference.partition(":")
    if name.endswith(".py"):
        raise ConfigError(f"{reference!r}: name the module, not its file: {name[:-3].replace('/', '.')}:{attribute}")
    try:
        module = imported_module(name, repr(reference))
    except ImportError as error:
        raise ConfigError(f"{reference!r}: can't import {name!r} ({error}); is its folder on the path?") from error
    if not hasattr(module, attribute):
        near = did_you_mean(attribute, [known for known in vars(module) if not known.startswith("_")])
        raise ConfigError(f"{reference!r}: {name} has no {attribute!r}.{near}")
    found = getattr(module, attribute)
    if not callable(found) and not isinstance(found, HeronEnv):
        raise ConfigError(f"{reference!r} is {found!r}; name a HeronEnv class, or a function that builds one")
    return found


def importable(factory: Callable[..., Any]) -> tuple[str | None, str]:
    """("module:attribute", "") if another process can import it, else (None, why not)."""
    module, name = getattr(factory, "__module__", None), getattr(factory, "__qualname__", "")
    if module == "__main__":
        return None, f"{name} is defined in __main__ (a script or notebook), which another process can't import"
    if not module or not name or "<" in name:
        return None, f"{name or factory!r} is defined inside a function, so another process can't import it"
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not factory:
        return None, f"{module}:{name} is another object by now, so another process can't import it"
    return f"{module}:{name}", ""


def parameters_of(factory: Callable[..., Any]) -> Mapping[str, inspect.Parameter] | None:
    """What the factory takes, by name; None where it does not say (some builtins)."""
    try:
        return inspect.signature(factory).parameters
    except (TypeError, ValueError, OverflowError):
        return None


def required(factory: Callable[..., Any]) -> list[str]:
    """Names of the arguments without which the factory can't be called."""
    found = (parameters_of(factory) or {}).values()
    return [p.name for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD) and p.default is p.empty]


def _of_instance(env: HeronEnv, name: str, options: dict[str, Any]) -> Subject:
    if options:
        raise ConfigError(f"check_env({name}, options={options!r}): it is built already; give a factory")
    why = "an environment that is built already can't be built again elsewhere; give its id or factory"
    return Subject(name, lambda: copy.deepcopy(env), None, why)

"""Episodes in which endpoints are asked: their answers are kept in fixtures beside the trace, and replayed."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from heron_env.core.policy import Policies
from heron_env.errors import TraceError
from heron_env.injection.fixtures import Fixture
from heron_env.injection.recording import Recording
from heron_env.lab.external import About, External, FixturePolicy, answers_of, digest_of, numbered, side_by_side
from heron_env.lab.gap.records import injected, origin_words
from heron_env.lab.traces.episode import Episode, Setting

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

NAME: Final = "fixture.jsonl"
Play = Callable[[Policies], Episode]


def record_answers(
    env: HeronEnv, policies: Policies | External, setting: Setting, fixture: Path | None, play: Play
) -> Episode:
    """Play an episode with the agents that endpoints play, if there are any, and keep their answers in `fixture`.

    Several endpoints have files of their own, `fixture-2.jsonl` and so on. Until the episode is over they are called
    `fixture.part.jsonl`; one that was cut off goes on from there.

    Raises TraceError where answers come and `fixture` is None.
    """
    groups = {agent: group for group, agents in env.groups.items() for agent in agents}
    named = {} if isinstance(policies, External) else policies
    own = {a: p for a, p in injected(env).items() if a not in named and groups[a] not in named}
    if not isinstance(policies, External) and not own:
        return play(policies)
    if fixture is None:
        raise TraceError(
            "endpoints are asked in this episode, and without their answers it can't be replayed; say where to keep "
            "them: record_episode(..., fixture='fixture.jsonl')"
        )
    part = fixture.with_stem(f"{fixture.stem}.part")
    about = About(setting.env_id, setting.options, record=part)
    chosen: dict[str, Any] = dict(
        policies.asked(env, setting.seed, about) if isinstance(policies, External) else policies
    )
    kept = {id(p): p for p in chosen.values() if isinstance(p, Recording)}
    for agent, policy in own.items():
        if id(policy) not in kept:
            kept[id(policy)] = Recording(getattr(policy, "policy", policy), numbered(part, len(kept)))
        chosen[agent] = kept[id(policy)]
    done = False
    try:
        episode = play(chosen)
        done = True
    finally:
        for recording in kept.values():
            recording.close(finished=done)
    copies = side_by_side(Path(policies.path)) if isinstance(policies, FixturePolicy) else []
    files = _placed(copies, [recording.path for recording in kept.values()], fixture)
    return replace(episode, setting=replace(setting, fixture=digest_of(files)))


def _placed(copies: list[Path], moved: list[Path], fixture: Path) -> list[Path]:
    """Put the files where the trace keeps them, in place of what was there; their names."""
    fixture.parent.mkdir(parents=True, exist_ok=True)
    before, names = side_by_side(fixture), [numbered(fixture, n) for n in range(len(copies) + len(moved))]
    for source, name in zip([*copies, *moved], names, strict=True):
        if source in moved:
            os.replace(source, name)
        elif not (name.exists() and name.samefile(source)):
            shutil.copyfile(source, name)
    for path in set(before) - set(names):
        path.unlink()
    return names


def replayed_answers(setting: Setting, env: HeronEnv, fixture: Path) -> Policies:
    """The answers of the recorded episode, from its fixtures. Raises TraceError where they are gone or changed."""
    files = side_by_side(fixture)
    if not files:
        raise TraceError(
            f"{fixture}: the answers of the endpoints in this episode are not there; copy them back beside the trace, "
            "or name where they lie now with --fixture"
        )
    if digest_of(files) != setting.fixture:
        raise TraceError(f"{fixture}: holds other answers than those of this episode; restore it")
    return answers_of(files, env, setting.seed, About(setting.env_id, setting.options))


def answer_counts(fixture: Path) -> dict[str, int]:
    """Answers by origin and code, `fallback TIMEOUT`."""
    found = [Fixture(path).decisions.values() for path in side_by_side(fixture)]
    return dict(sorted(Counter(origin_words(one.source, one.code) for of in found for one in of).items()))

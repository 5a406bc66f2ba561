"""Environments of PettingZoo and Gymnasium by name, as sweeps and margins run them under the network.

`gymnasium:CartPole-v1` is `gymnasium.make("CartPole-v1")`; `pettingzoo:mpe2/simple_spread_v3` is the `parallel_env` of
mpe2.simple_spread_v3, or of the module below pettingzoo. Options that `under_network` knows are its own, all others the
environment's; `noop` may name a function or a value, `policy.py:stay`. Of several agents the root is the team, whose
reward is the sum of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, ClassVar, Final

import gymnasium

from heron_env.adapters.network.faces import NetworkEnv, under_network
from heron_env.adapters.network.noops import Noops
from heron_env.core.hierarchy import Hierarchy
from heron_env.core.policy import Answer, Asked, Policies
from heron_env.core.rule import one_by_one
from heron_env.envs.decisions import policies_by_agent
from heron_env.envs.description import Benchmark
from heron_env.envs.episodes import EpisodeResult
from heron_env.errors import ConfigError
from heron_env.registry import LIBRARIES, imported, imported_module
from heron_env.scheduling.timing import Timing, resolve, to_ns
from heron_env.trust import require_trust

TEAM_AGENT: Final = "team"
OF_THE_NETWORK: Final = ("dt", "on_missing", "noop", "observe_age")
OF_WORLDS: Final = ("disturbances", "monitors", "events", "wait")
"""What happens to a world that somebody can look into."""


class Opaque(SimpleNamespace):
    """Some of what an environment of this library has; asked for anything else it raises ConfigError."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise ConfigError(
            f"a black box has no {name!r}: sweep, margin, trace, replay and watch take it; all else needs an "
            "environment of this library"
        )


@dataclass(frozen=True)
class Member:
    """An agent of a black box, whom nobody looks into."""

    agent_id: str
    injected: ClassVar[bool] = False
    policy: ClassVar[None] = None


def _below(root: Sequence[str], agents: Sequence[str]) -> Hierarchy:
    """The agents below the root, or side by side where there is none."""
    ids, ranks = (*root, *agents), tuple(range(len(root), len(root) + len(agents)))
    parents = *[-1 for _ in root], *[len(root) - 1 for _ in agents]
    children = *[ranks for _ in root], *[() for _ in agents]
    levels = *[3 for _ in root], *[1 for _ in agents]
    return Hierarchy(tuple(map(Member, ids)), ids, parents, children, levels, {id: rank for rank, id in enumerate(ids)})


class BlackBox(Opaque):
    """An environment of others as an `Env`: it has no states, no disturbances."""

    physics_substeps, compiled, schedule = 1, False, None

    def __init__(self, id: str, **options: Any) -> None:
        super().__init__()
        network = {name: options.pop(name) for name in OF_THE_NETWORK if name in options}
        if isinstance(noop := network.get("noop"), str) and ":" in noop:
            require_trust(noop)
            network["noop"] = imported(noop, f"make({id!r}, noop={noop!r})")
        self.env = env = under_network(_built(id, options), **network)
        self.dt = float(network.get("dt", 1.0))
        self.dt_ns = to_ns(self.dt, "dt")
        setting, team = env.network, not isinstance(env, NetworkEnv)
        self.possible_agents, self._spaces = list(setting.agents), list(setting.action_spaces)
        self.group_map: dict[str, list[str]] = env.groups
        if team and TEAM_AGENT in (*self.possible_agents, *env.groups):
            raise ConfigError(
                f"make({id!r}): {TEAM_AGENT!r} is the sum of all agents; no agent or group may be called so"
            )
        root = (TEAM_AGENT,) * team
        self.groups = {**{agent: [agent] for agent in root}, **self.group_map}
        self.hierarchy = _below(root, setting.agents)
        for rank in range(len(setting.agents)):
            setting.noops.require(rank, "is compared with doing nothing")
        self.timings = self.timings_of(None)

    def observation_space(self, agent: str) -> Any:
        """Of one agent, with ages where they are observed."""
        return self.env.network.forms[self.possible_agents.index(agent)].space

    def action_space(self, agent: str) -> Any:
        """Of one agent."""
        return self._spaces[self.possible_agents.index(agent)]

    def timings_of(self, schedule: Any) -> tuple[Timing, ...]:
        """By rank, the root's first. Raises ScheduleError for what a black box can't do."""
        ids = self.hierarchy.ids
        timings = resolve(schedule, ids=ids, levels=self.hierarchy.level, groups=self.groups, dt_ns=self.dt_ns)
        self.env.timings_of({timing.agent: timing.config for timing in timings if timing.agent in self.possible_agents})
        return timings

    def resolved(self, policies: Policies) -> dict[str, Any]:
        """The policy of each agent. Raises UnknownAgent, ConfigError."""
        return policies_by_agent(policies, self.hierarchy.ids, self.groups, dict.fromkeys(self.possible_agents))

    def benchmark(self) -> Benchmark:
        """It has no cases and no strongest baseline of its own."""
        return Benchmark()

    def baselines(self) -> dict[str, Policies]:
        """By name: nothing, so that the no-op is in force, and actions drawn from what is allowed."""
        drawn = Noops("random", self.possible_agents, self._spaces)
        random = {agent: ObliviousPolicy(drawn, rank) for rank, agent in enumerate(self.possible_agents)}
        return {"do nothing": {"*": Resting()}, "random": random}

    def disturbance_sets(self) -> dict[str, Any]:
        """None."""
        return {}

    def data_files(self) -> dict[str, str]:
        """None that anybody names."""
        return {}

    def run_synchronous(self, policies: Policies, *, disturbances: Sequence[Any] = (), **run: Any) -> EpisodeResult:
        """One episode of the bare environment."""
        return self._with_root(self.env.run_synchronous(policies, **run))

    def run_event_driven(self, policies: Policies, *, schedule: Any = None, **run: Any) -> EpisodeResult:
        """One episode under the network. Raises ConfigError for disturbances, monitors, events and `wait`."""
        for name in OF_WORLDS:
            if run.pop(name, None):
                raise ConfigError(f"run({name}=...): nobody looks into a black box; leave it out")
        if isinstance(schedule, Mapping):
            schedule = {agent: config for agent, config in schedule.items() if agent != TEAM_AGENT}
        return self._with_root(self.env.run_event_driven(policies, schedule=schedule, **run))

    def start_event_driven(self, policies: Policies, **run: Any) -> Any:
        """The same, as records of episodes take it: over as soon as it begins, and without the team."""
        result, setting = self.run_event_driven(policies, **run), self.env.network
        for of_all in (result.rewards, result.terminated, result.truncated):
            of_all.pop(TEAM_AGENT, None)
        ranks, hierarchy = range(len(setting.agents)), _below((), setting.agents)
        plan = Opaque(views={rank: Opaque(received_names=(), sources=(rank,)) for rank in ranks})
        env = Opaque(
            hierarchy=hierarchy, simulation=Opaque(model=Opaque(plan=plan)), dt_ns=self.dt_ns, physics_substeps=1
        )
        return Opaque(
            env=env, context=self.env.played, agents=Opaque(deciding=ranks), until=lambda _: None,
            result=lambda: result,
        )  # fmt: skip

    def _with_root(self, result: EpisodeResult) -> EpisodeResult:
        if self.hierarchy.ids[0] == TEAM_AGENT:
            earned: dict[float, list[float]] = {}
            for rewards in result.rewards.values():
                for time, value in rewards:
                    earned.setdefault(time, []).append(value)
            result.rewards = {TEAM_AGENT: [(t, one_by_one(earned[t])) for t in sorted(earned)], **result.rewards}
            result.truncated[TEAM_AGENT] = any(result.truncated.values())
            result.terminated[TEAM_AGENT] = not result.truncated[TEAM_AGENT]
        return result


class Resting:
    """It never says anything."""

    def answer(self, asked: Asked) -> Answer:
        """Nothing new."""
        return Answer(None)


@dataclass(frozen=True)
class ObliviousPolicy:
    """What is drawn for one agent."""

    drawn: Noops
    rank: int

    def forward(self, observation: Any, mask: Any = None, draw: int = 0) -> Any:
        """Whatever is observed."""
        return self.drawn.draw(self.rank, mask, observation, draw)


def filmable(id: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of an environment that is to be filmed: a black box draws its own frames."""
    rendering = {"render_mode": "rgb_array"} if id.partition(":")[0] in LIBRARIES else {}
    return {**rendering, **options}


def _built(id: str, options: dict[str, Any]) -> Any:
    """The environment that the name means, bare. Raises ConfigError."""
    library, _, name = id.partition(":")
    try:
        if library == "gymnasium":
            if "max_steps" in options:
                options["max_episode_steps"] = options.pop("max_steps")
            return gymnasium.make(name, **options)
        if "max_steps" in options:  # make() renames it
            options["max_cycles"] = options.pop("max_steps")
        path = name.replace("/", ".")
        own = find_spec(path.partition(".")[0]) is not None
        return imported_module(path if own else f"pettingzoo.{path}", f"make({id!r})").parallel_env(**options)
    except (ImportError, AttributeError, TypeError, gymnasium.error.Error) as error:
        films = "; `heron trace` needs no frames" if "render_mode" in str(error) else ""
        raise ConfigError(
            f"make({id!r}): {type(error).__name__}: {error}; correct the name, its options, or install it{films}"
        ) from error

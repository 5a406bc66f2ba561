"""What `--plan K --merge A,B` makes of a policy whose answer is `[k, size]`: one for each scheme, and one action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from heron_env.core.planned import Planned
from heron_env.core.plans import MERGES, NOTHING
from heron_env.core.policy import Answer, Asked, Policies
from heron_env.errors import ConfigError
from heron_env.given import require_one_of
from heron_env.lab.policies import PythonPolicy
from heron_env.trust import MODEL_FILES

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

FREEZE: Final = "freeze"
"""The scheme of who asks when the plan has ended: "restart" with replan="end"."""


ONE: Final = "one action"
"""The first action alone, of a plan that begins where the agent is: it knows of nothing that is running."""


class OneAction:
    """A planning policy as it is without plans."""

    def __init__(self, policy: Any) -> None:
        self._planned = Planned(policy, horizon=1)

    def begin(self, seed: int, episode: int) -> None:
        """Begin an episode."""
        self._planned.begin(seed, episode)

    def answer(self, asked: Asked) -> Answer:
        """A plan of one."""
        return self._planned.answer(replace(asked, running=NOTHING))


@dataclass(frozen=True)
class PlannedPolicy(PythonPolicy):
    """A function, or policies by agent, of which `horizon` actions are sent. `scheme`: of MERGES, FREEZE or ONE."""

    horizon: int
    scheme: str

    def build(self, env: HeronEnv, seed: int) -> Policies:
        """Raises as PythonPolicy does, ConfigError also for what plans by itself."""
        how: Any = {"merge": "restart", "replan": "end"} if self.scheme == FREEZE else {"merge": self.scheme}
        policies: Any = super().build(env, seed)
        if self.scheme == ONE:
            return {agent: OneAction(policy) for agent, policy in policies.items()}
        return {agent: Planned(policy, horizon=self.horizon, **how) for agent, policy in policies.items()}

    def identity(self) -> str:
        """That of the function, and how it is played."""
        return f"planned {self.horizon} {self.scheme} {super().identity()}"


def planned(policies: Mapping[str, Any], horizon: int | None, merges: str | None) -> dict[str, Any]:
    """The same policies; each function, `policy.py:act`, as `act one action`, `act drop` and so on.

    Args:
        policies: by name, as `Words` has them.
        horizon: how many actions are sent; None: all policies as they are.
        merges: of MERGES or FREEZE, with commas between; None: "drop".

    Raises ConfigError.
    """
    if horizon is None:
        if merges is not None:
            raise ConfigError(f"--merge {merges!r:.60}: is of plans; give --plan K, too")
        return dict(policies)
    schemes = (merges or "drop").split(",")
    for scheme in schemes:
        require_one_of(f"--merge {scheme!r:.60}", scheme, (*MERGES, FREEZE))
    functions = [n for n, p in policies.items() if isinstance(p, PythonPolicy) and not p.name.endswith(MODEL_FILES)]
    if not functions:
        raise ConfigError(
            f"--plan {horizon}: {list(policies)} has no function that answers [k, size], as policy.py:act"
        )
    short = {name: name.rpartition(":")[2] for name in functions}
    result = dict[str, Any]()
    for name, policy in policies.items():
        if name not in functions:
            result[name] = policy
            continue
        label = short[name] if [*short.values()].count(short[name]) == 1 else name
        result[f"{label} one action"] = PlannedPolicy(policy.name, 1, ONE)
        result |= {f"{label} {scheme}": PlannedPolicy(policy.name, horizon, scheme) for scheme in schemes}
    return result

"""The agents: discs that push themselves by a continuous or a discrete action, in MPE's order of directions."""

from heron_env.agents.agent import FieldAgent
from heron_env.core.action import Continuous, Discrete, Vector
from heron_env.core.rule import rule
from heron_env.worlds.spread.features import FULL_FORCE, Contact, Force, Position, Surroundings, Team, Velocity

DIRECTIONS = ("stay", "left", "right", "down", "up")
"""What the elements of a continuous action mean, and the choices of a discrete one."""


class Disc(FieldAgent):
    """A body without a drive. Its reward mixes the team's success with its own collisions."""

    features = (Velocity, Position, Surroundings, Force, Contact)

    @staticmethod
    @rule
    def compute_local_reward(contact: Contact, team: Team) -> float:
        """-(1 - local_ratio) distance - local_ratio contacts."""
        return -team.distance * (1.0 - contact.local_ratio) - contact.others * contact.local_ratio


class Pusher(Disc):
    """Five numbers in [0, 1] (MPE's continuous actions): how hard to push in each direction; the first does nothing."""

    action = Continuous(0.0, 1.0, size=len(DIRECTIONS))

    @staticmethod
    @rule(writes=(Force.x, Force.y))
    def apply_action(action: Vector) -> tuple[float, float]:
        """Opposite pushes cancel."""
        return FULL_FORCE * (action[2] - action[1]), FULL_FORCE * (action[4] - action[3])


class Chooser(Disc):
    """One of five directions (MPE's discrete actions), pushed with full force; the first does nothing."""

    action = Discrete(len(DIRECTIONS))

    @staticmethod
    @rule(writes=(Force.x, Force.y))
    def apply_action(action: Vector) -> tuple[float, float]:
        """All the force in one direction. Products, because a processor can't guess which way a choice branches."""
        choice = action[0]
        right = FULL_FORCE * (choice == 2.0) - FULL_FORCE * (choice == 1.0)
        up = FULL_FORCE * (choice == 4.0) - FULL_FORCE * (choice == 3.0)
        return right, up

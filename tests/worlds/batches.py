"""A batch of a world is its lanes, each of them the environment with its own seed, to the last bit."""

import numpy as np

from heron_env import BatchEnv, make


def batch_is_its_lanes(env_id: str, lanes: int = 3, steps: int = 5, seed: int = 5, **options: object) -> BatchEnv:
    """Observations, rewards, truth and KPIs, also after an end and where one lane alone begins anew."""
    batch, singles = BatchEnv(env_id, lanes, **options), [make(env_id, **options) for _ in range(lanes)]
    spaces = {agent: singles[0].action_space(agent) for agent in singles[0].possible_agents}
    for number, space in enumerate(spaces.values()):
        space.seed(number)
    seen, _ = batch.reset(seed=seed)
    alone = [single.reset(seed=seed + lane)[0] for lane, single in enumerate(singles)]
    for step in range(steps):
        if step == 3:
            seen, _ = batch.reset(mask=np.arange(lanes) == 1)
            alone[1], _ = singles[1].reset()
        actions = [{agent: space.sample() for agent, space in spaces.items()} for _ in singles]
        joint = {g: np.array([[own[agent] for agent in ids] for own in actions]) for g, ids in batch.groups.items()}
        seen, rewards, *_ = batch.step(joint)
        for lane, single in enumerate(singles):
            alone[lane], earned, *_ = single.step(actions[lane])
            if single.agents:
                assert np.array_equal(batch.lane(lane).simulation.truth, single.simulation.truth)
                assert batch.lane(lane).kpis() == single.kpis()
            else:
                alone[lane], _ = single.reset()
            for group, ids in batch.groups.items():
                assert rewards[group][lane].tolist() == [earned[agent] for agent in ids]
                assert np.array_equal(seen[group][lane], [alone[lane][agent] for agent in ids])
    return batch

"""A run over real sockets is repeated from its record bit for bit; in lockstep it is the synchronous one."""


import pytest
from real.carried_kit import NETWORKS, RECORD, SETTINGS, Quick


def url_for(transport: str, request: pytest.FixtureRequest) -> str:
    """Of the broker, where the transport has one."""
    return str(request.getfixturevalue("mosquitto").url) if transport == "mqtt" else ""


@pytest.mark.parametrize("name", ["spread", "grid", "market", "markets"])
@pytest.mark.parametrize("transport", NETWORKS)
def test_a_run_is_repeated_bit_for_bit(name: str, transport: str, quick: Quick, request: pytest.FixtureRequest) -> None:
    run = quick.run(name, transport, url_for(transport, request))
    result = quick.repeated(name, run)
    assert sum(len(actions) for actions in result.actions.values()) > 4, "hardly anything happened"


@pytest.mark.parametrize("name", ["grid", "prompt market"])
@pytest.mark.parametrize("transport", NETWORKS)
def test_in_lockstep_it_is_the_synchronous_one(
    name: str, transport: str, quick: Quick, request: pytest.FixtureRequest
) -> None:
    run = quick.run(name, transport, url_for(transport, request), lockstep=True)
    setting = SETTINGS[name]
    env = setting.build()
    other = env.run_synchronous(setting.policies(), seed=run.arrivals.seed, record=RECORD)
    assert other.same_course(run.result) and other.letters.sent == run.result.letters.sent
    assert quick.repeated(name, run).same_course(other)

"""What a kernel's queue and a real broker did, as recorded, is what the post office says; wrong models miss the bar."""

import pytest

from benchmarks import broker_queue, hosts, kernel_queue


@pytest.mark.parametrize("name", kernel_queue.PLAYS)
def test_a_queue_of_the_kernel(name: str) -> None:
    play, packets = kernel_queue.PLAYS[name], kernel_queue.recorded()[name]
    assert len(packets) == play.packets
    law = kernel_queue.compared(packets, play.medium)
    assert law.passes, law
    for model, medium in kernel_queue.wrong(play).items():
        wrong = kernel_queue.compared(packets, medium)
        assert abs(wrong.age_off) > kernel_queue.MOST_AGE, (model, wrong)
        assert play.places is None or abs(wrong.refused[1] - wrong.refused[0]) > kernel_queue.MOST_REFUSED, model


@pytest.mark.parametrize("loss", broker_queue.LOSSES)
def test_a_broker_behind_losses(loss: float) -> None:
    """All runs of a loss together, few seeds. At 10 % some lie beyond 3 deviations (trust_the_clock.md)."""
    runs = [run for run in broker_queue.recorded() if run.loss == loss]
    law = broker_queue.compared(runs, broker_queue.LAWS["tcp()"], seeds=20)
    wrong = broker_queue.compared(runs, broker_queue.LAWS["without gaps"], seeds=10)
    assert len(runs) == 20 and abs(law.mean_off) <= broker_queue.MOST_MEAN, law.mean_off
    assert sum(abs(score) > broker_queue.MOST_SCORE for score in law.scores) <= 3, law.scores
    assert abs(wrong.mean_off) > broker_queue.MOST_MEAN, wrong.mean_off


def test_what_a_machine_lacks_is_said() -> None:
    words = hosts.missing("no-such-program")
    assert words.startswith("not installed here: ") and words.endswith("no-such-program")

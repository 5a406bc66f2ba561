"""Work spread over processes: what happens when one of them is killed."""

import os
import signal

import pytest

from heron_env.errors import WorkerLost
from heron_env.evaluation.workers import finished


def half(number: int) -> float:
    """Three's process is killed, as by a system that runs out of memory."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number / 2


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_process_that_is_killed_is_an_error_that_names_what_was_under_way():
    with pytest.raises(WorkerLost, match=r"a worker process ended suddenly.*was under way: (\d; )*3(; \d)*\. Run it"):
        list(finished(half, [1, 2, 3, 4, 5], 2))

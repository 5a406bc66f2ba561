"""Seats of a run: a server of their pages beside it, in this process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from heron_env.errors import ConfigError
from heron_env.injection.policy import ExternalPolicy
from heron_env.injection.sdk import LOOPBACK
from heron_env.serve.guarding import listening
from heron_env.serve.seat import TIMEOUT, Seat
from heron_env.serve.seat_app import seat_application

if TYPE_CHECKING:
    from heron_env.envs.base import HeronEnv

FAREWELL: Final = 2.0
"""So long pages may take to hear that it is over, s."""


class Seats:
    """Pages for people who play agents of an environment, while the block lasts.

        with Seats(env, "Human") as seats:
            print(seats.urls["Human"])          # to be opened in a browser
            env.run_event_driven({**others, **seats.policies}, ScheduleConfig(), seed=0)

    Args:
        env: whose agents they play; also the one that runs.
        agents: who; one or several.
        timeout: s that a question waits for its answer; None: for ever. Without one the agent does nothing.
        host, port: where the pages are; port 0: any that is free. An address of a page holds 128 random bits.

    Attributes:
        urls: of the pages, by agent.
        policies: by agent.

    Raises:
        ConfigError: an agent decides nothing, or an argument makes no sense.
        OSError: the port is taken.
    """

    def __init__(
        self, env: HeronEnv, agents: str | Sequence[str], *, timeout: float | None = TIMEOUT, host: str = LOOPBACK,
        port: int = 0,
    ) -> None:  # fmt: skip
        try:
            import uvicorn
        except ImportError as error:
            raise ConfigError("seats need uvicorn: pip install 'heron_env[serve]'") from error
        names = (agents,) if isinstance(agents, str) else tuple(agents)
        self.seats = {name: Seat(env, name, timeout) for name in names}
        self._listening, hosts = listening(host, port)
        port = self._listening.getsockname()[1]
        app = seat_application(self.seats.values(), hosts)
        settings = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, lifespan="off", timeout_graceful_shutdown=2
        )
        self._server = uvicorn.Server(settings)
        self.urls = {name: f"http://{host}:{port}/seat/{seat.token}" for name, seat in self.seats.items()}
        self.policies: dict[str, ExternalPolicy] = {
            name: seat.policy(env, self.urls[name]) for name, seat in self.seats.items()
        }
        self._thread = Thread(target=self._server.run, kwargs={"sockets": [self._listening]}, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self, linger: float = 0.0) -> None:
        """Tell the pages that it is over, wait `linger` s for them to hear it, and stop."""
        for seat in self.seats.values():
            seat.close()
        time.sleep(linger)
        self._server.should_exit = True
        self._thread.join()
        self._listening.close()

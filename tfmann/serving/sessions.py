"""Sessions: documents that continue from request to request, by names that clients choose."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from tfmann.serving.requests import RequestError


class Session(NamedTuple):
    """A document that may continue.

    Attributes:
      state: as `Translator.resume` takes it.
      sentences: how many it has.
      used: when it was last used, in seconds of the clock.
    """

    state: Any
    sentences: int
    used: float


class Sessions:
    """Sessions by name; one that is not used for a while expires.

    A new session is refused if there are too many: dropping another one would silently change its
    translations. Sessions that begin in one batch are counted at its end, so there may be more than
    the limit by those of a batch.
    """

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic):
        """Takes the limits: how many, and seconds without a request until one expires."""
        self._most, self._seconds, self._clock = most, seconds, clock
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def __len__(self) -> int:
        """Returns the number of sessions that have not expired."""
        self._expire()
        return len(self._sessions)

    def get(self, name: str) -> Session | None:
        """Returns the session of that name, which is in use now; None if there is none (any more).

        Raises:
          RequestError: there is none, and no room for another.
        """
        self._expire()
        session = self._sessions.get(name)
        if session is None and len(self._sessions) >= self._most:
            raise RequestError(
                503, f"there are {self._most} sessions already: end one, or come back later"
            )
        if session is not None:  # not to expire while its request waits or is translated
            self.put(name, session.state, session.sentences)
        return session

    def peek(self, name: str) -> Session | None:
        """Returns the session of that name, expired or not; None if there is none."""
        return self._sessions.get(name)

    def put(self, name: str, state: Any, sentences: int) -> None:
        """Saves the state of a document, which is in use now."""
        self._sessions[name] = Session(state, sentences, self._clock())
        self._sessions.move_to_end(name)

    def end(self, name: str) -> bool:
        """Ends a session; returns whether there was one."""
        self._expire()
        return self._sessions.pop(name, None) is not None

    def _expire(self) -> None:
        oldest = self._clock() - self._seconds
        while self._sessions:
            name, session = next(iter(self._sessions.items()))
            if session.used >= oldest:
                return
            del self._sessions[name]

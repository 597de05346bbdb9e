"""A queue of jobs that one thread runs in batches."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

from tfmann.serving.requests import RequestError

Run = Callable[[Sequence[Any], Callable[[], bool]], Sequence[Any]]


class Work(Protocol):
    """A job and the use of its result; both methods are called between two batches."""

    def begin(self) -> Any:
        """Returns the job for `run`, when its batch begins."""

    def end(self, result: Any) -> Any:
        """Returns the answer; is not called if the client has gone."""


class _Waiting(NamedTuple):
    """Work in the queue."""

    work: Work
    size: int
    key: Hashable
    alone: str
    answer: asyncio.Future


class Batcher:
    """A queue of jobs from many coroutines, whose batches run in one thread.

    A batch has jobs of one key. While a batch runs, others are queued. After a batch of several
    jobs the next one waits `gather_seconds`, because callers that were answered together tend to
    send their next requests together. A single caller never waits.

    Attributes:
      waiting: the size of all jobs that wait.
    """

    def __init__(
        self,
        run: Run,
        batch_size: int,
        most_waiting: int,
        gather_seconds: float = 0.003,
        observe: Callable[[int], None] = lambda size: None,
    ):
        """Starts nothing yet.

        Args:
          run: maps the jobs of a batch to their results, in order; called in the thread. It also
            gets a function that returns whether anybody still waits for one of them, and may raise
            an error if nobody does.
          batch_size: a batch is full at this sum of sizes; the last job may go beyond it.
          most_waiting: above this sum of sizes a job is refused, unless nothing waits.
          gather_seconds: see the class.
          observe: takes the size of every batch.
        """
        self._run, self._batch_size, self._most_waiting = run, batch_size, most_waiting
        self._gather_seconds, self._observe = gather_seconds, observe
        self._queue: deque[_Waiting] = deque()
        self._closing = False
        self.waiting = 0

    async def __aenter__(self) -> Batcher:
        """Starts the thread."""
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="translate")
        self._loop = asyncio.create_task(self._serve())
        return self

    async def __aexit__(self, *error: Any) -> None:
        """Runs what waits, and ends the thread."""
        self._closing = True
        self._wake.set()
        await self._loop
        self._thread.shutdown()

    async def submit(self, work: Work, size: int, key: Hashable = (), alone: str = "") -> Any:
        """Runs a job in the next batch that has room for it.

        Args:
          work: makes the job, and takes its result.
          size: what it adds to a batch.
          key: jobs of another key go in another batch.
          alone: two jobs of the same name, unless it is "", never share a batch, so that the
            second begins with the state that the first has left.

        Raises:
          RequestError: too many wait, or the server is stopping.
        """
        if self._closing:
            raise RequestError(503, "the server is stopping")
        if self._queue and self.waiting + size > self._most_waiting:
            raise RequestError(
                503, f"the server is busy: {self.waiting} lines wait; come back in a moment"
            )
        answer = asyncio.get_running_loop().create_future()
        item = _Waiting(work, size, key, alone, answer)
        self._queue.append(item)
        self.waiting += size
        self._wake.set()
        try:
            return await answer
        except asyncio.CancelledError:
            if answer.done() and not answer.cancelled():  # at the last moment: its work has ended
                return answer.result()
            self._remove(item)  # the client has gone: its place is free at once
            raise

    def _remove(self, item: _Waiting) -> None:
        """Removes work from the queue, unless a batch has it."""
        remaining = deque(other for other in self._queue if other is not item)
        if len(remaining) < len(self._queue):
            self._queue = remaining
            self.waiting -= item.size

    async def _serve(self) -> None:
        several = False
        while True:
            if not self._queue:
                if self._closing:
                    return
                self._wake.clear()
                await self._wake.wait()
                continue
            if several and not self._closing:
                await asyncio.sleep(self._gather_seconds)
            batch = self._take()
            several = len(batch) > 1
            if batch:
                await self._answer(batch)

    def _take(self) -> list[_Waiting]:
        """Removes the next batch from the queue: the first job, and those that can join it."""
        batch: list[_Waiting] = []
        names: set[str] = set()
        remaining: deque[_Waiting] = deque()
        total = 0
        for item in self._queue:
            if item.answer.done():  # the client has gone
                self.waiting -= item.size
            elif batch and (
                total >= self._batch_size or item.key != batch[0].key or item.alone in names
            ):
                remaining.append(item)
            else:
                batch.append(item)
                total += item.size
                self.waiting -= item.size
            if item.alone:
                names.add(item.alone)  # also of items that stay, because their order matters
        self._queue = remaining
        return batch

    async def _answer(self, batch: list[_Waiting]) -> None:
        begun = []
        for item in batch:
            with _failing(item):
                begun.append((item, item.work.begin()))
        if not begun:
            return
        self._observe(sum(item.size for item, _ in begun))
        jobs = [job for _, job in begun]

        def is_wanted() -> bool:
            return not all(item.answer.done() for item, _ in begun)

        loop = asyncio.get_running_loop()
        try:
            results = list(await loop.run_in_executor(self._thread, self._run, jobs, is_wanted))
        except Exception as error:
            for item, _ in begun:
                with _failing(item):
                    raise error
            return
        for (item, _), result in zip(begun, results):
            if not item.answer.done():
                with _failing(item):
                    item.answer.set_result(item.work.end(result))


@contextlib.contextmanager
def _failing(item: _Waiting) -> Iterator[None]:
    """Answers the request with the error, if the block raises one."""
    try:
        yield
    except Exception as error:
        if not item.answer.done():
            item.answer.set_exception(error)

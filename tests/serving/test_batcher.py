"""Jobs that wait together run together, in order, and none is lost."""

import asyncio
import threading

import pytest

from tfmann.serving.batcher import Batcher
from tfmann.serving.requests import RequestError


class Work:
    """Doubles a number; records its start and its end."""

    def __init__(self, number, log=None):
        self.number, self.log = number, log if log is not None else []

    def begin(self):
        self.log.append(f"begin {self.number}")
        return self.number

    def end(self, result):
        self.log.append(f"end {self.number}")
        return result


class Gate:
    """A `run` that waits until it is let go, and remembers its batches."""

    def __init__(self):
        self.batches, self.open, self.entered = [], threading.Event(), threading.Event()

    def __call__(self, jobs, is_wanted):
        self.batches.append(list(jobs))
        self.entered.set()
        assert self.open.wait(10)
        return [2 * job for job in jobs]


async def wait_for_batch(gate):
    while not gate.entered.is_set():
        await asyncio.sleep(0.001)


def test_what_waits_while_a_batch_runs_is_the_next_batch():
    async def play():
        gate = Gate()
        async with Batcher(gate, batch_size=8, most_waiting=100) as batcher:
            first = asyncio.create_task(batcher.submit(Work(1), 1))
            await wait_for_batch(gate)
            later = [asyncio.create_task(batcher.submit(Work(n), 1)) for n in range(2, 6)]
            await asyncio.sleep(0.01)
            assert batcher.waiting == 4
            gate.open.set()
            results = await asyncio.gather(first, *later)
        return gate.batches, results, batcher.waiting

    batches, results, waiting = asyncio.run(play())
    assert batches == [[1], [2, 3, 4, 5]]
    assert results == [2, 4, 6, 8, 10] and waiting == 0


def batches_of(requests, batch_size):
    """The batches of work 0 and of requests that come meanwhile: number, size, key and name."""

    async def play():
        gate = Gate()
        async with Batcher(gate, batch_size, most_waiting=100, gather_seconds=0) as batcher:
            first = asyncio.create_task(batcher.submit(Work(0), 1))
            await wait_for_batch(gate)
            tasks = [asyncio.create_task(batcher.submit(Work(n), *rest)) for n, *rest in requests]
            await asyncio.sleep(0.01)
            gate.open.set()
            await asyncio.gather(first, *tasks)
        return gate.batches

    return asyncio.run(play())


def test_a_batch_has_one_key_and_no_more_than_its_size():
    requests = [(1, 3, "a"), (2, 3, "b"), (3, 3, "a"), (4, 3, "a"), (5, 1, "b")]
    assert batches_of(requests, batch_size=4) == [[0], [1, 3], [2, 5], [4]]


def test_work_of_one_name_goes_in_order_and_ends_before_the_next_begins():
    async def play():
        gate, log = Gate(), []
        async with Batcher(gate, batch_size=8, most_waiting=100, gather_seconds=0) as batcher:
            first = asyncio.create_task(batcher.submit(Work(0), 1))
            await wait_for_batch(gate)
            tasks = [
                asyncio.create_task(batcher.submit(Work(n, log), 1, alone="me")) for n in (1, 2, 3)
            ]
            await asyncio.sleep(0.01)
            gate.open.set()
            await asyncio.gather(first, *tasks)
        return gate.batches, log

    batches, log = asyncio.run(play())
    assert batches == [[0], [1], [2], [3]]
    assert log == ["begin 1", "end 1", "begin 2", "end 2", "begin 3", "end 3"]


def test_work_of_one_name_keeps_its_order_though_its_keys_differ():
    requests = [(1, 1, "a", ""), (2, 1, "b", "me"), (3, 1, "a", "me"), (4, 1, "a", "another")]
    assert batches_of(requests, batch_size=8) == [[0], [1, 4], [2], [3]]


def test_too_much_work_is_refused_and_what_nobody_waits_for_is_not_done():
    async def play():
        gate = Gate()
        async with Batcher(gate, batch_size=4, most_waiting=3) as batcher:
            first = asyncio.create_task(batcher.submit(Work(0), 1))
            await wait_for_batch(gate)
            abandoned = asyncio.create_task(batcher.submit(Work(1), 2))
            second = asyncio.create_task(batcher.submit(Work(2), 1))
            await asyncio.sleep(0.01)
            with pytest.raises(RequestError, match="3 lines wait") as refused:
                await batcher.submit(Work(3), 1)
            assert refused.value.status == 503
            abandoned.cancel()
            await asyncio.sleep(0.01)
            assert batcher.waiting == 1, "its place is free while the batch still runs"
            third = asyncio.create_task(batcher.submit(Work(4), 2))
            await asyncio.sleep(0.01)
            gate.open.set()
            assert await asyncio.gather(first, second, third) == [0, 4, 8]
        return gate.batches, batcher.waiting

    assert asyncio.run(play()) == ([[0], [2, 4]], 0)


def test_an_error_reaches_all_of_its_batch_and_no_other():
    def run(jobs, is_wanted):
        if 1 in jobs:
            raise ValueError("one")
        return jobs

    async def play():
        async with Batcher(run, batch_size=4, most_waiting=9) as batcher:
            with pytest.raises(ValueError, match="one"):
                await batcher.submit(Work(1), 1)
            return await batcher.submit(Work(2), 1)

    assert asyncio.run(play()) == 2


def test_a_batch_learns_that_nobody_waits_for_it_any_more():
    answers, told = threading.Event(), threading.Event()
    wanted = []

    def run(jobs, is_wanted):
        for event in (answers, told):
            wanted.append(is_wanted())
            assert event.wait(10)
        wanted.append(is_wanted())
        raise ValueError("nobody reads this")

    async def play():
        async with Batcher(run, batch_size=4, most_waiting=9) as batcher:
            tasks = [asyncio.create_task(batcher.submit(Work(n), 1)) for n in (1, 2)]
            while not wanted:
                await asyncio.sleep(0.001)
            tasks[0].cancel()
            await asyncio.sleep(0.001)
            answers.set()
            while len(wanted) < 2:
                await asyncio.sleep(0.001)
            tasks[1].cancel()
            await asyncio.sleep(0.001)
            told.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    errors = asyncio.run(play())
    assert all(isinstance(error, asyncio.CancelledError) for error in errors)
    assert wanted == [True, True, False]


@pytest.mark.parametrize("fails", [False, True])
def test_an_answer_that_comes_with_the_time_limit_is_given(fails):
    """Its work has ended, and has saved its document: the client must not send it again."""

    class Slow(Work):
        def end(self, result):
            asyncio.get_running_loop().call_soon(
                task.cancel
            )  # before the waiting coroutine goes on
            if fails:
                raise RequestError(409, "gone")
            return super().end(result)

    async def submit(batcher):
        nonlocal task
        task = asyncio.create_task(batcher.submit(Slow(3), 1))
        return await task

    async def play():
        gate = Gate()
        gate.open.set()
        async with Batcher(gate, batch_size=4, most_waiting=9) as batcher:
            return await submit(batcher)

    task = None
    if fails:
        with pytest.raises(RequestError, match="gone"):
            asyncio.run(play())
    else:
        assert asyncio.run(play()) == 6


def test_closing_finishes_what_waits_and_takes_no_more():
    async def play():
        gate = Gate()
        async with Batcher(gate, batch_size=1, most_waiting=9) as batcher:
            tasks = [asyncio.create_task(batcher.submit(Work(n), 1)) for n in range(3)]
            await wait_for_batch(gate)
            gate.open.set()
        with pytest.raises(RequestError, match="stopping"):
            await batcher.submit(Work(9), 1)
        return await asyncio.gather(*tasks)

    assert asyncio.run(play()) == [0, 2, 4]

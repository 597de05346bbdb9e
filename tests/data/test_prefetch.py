"""The thread that prepares batches in advance."""

import itertools
import threading
import time

import pytest

from tfmann.data.prefetch import prefetch
from tfmann.errors import UserError


def until(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_items_come_ahead_in_order_and_end():
    assert list(prefetch(iter(range(100)), depth=3)) == list(range(100))
    assert list(prefetch(iter([]))) == []


def test_prefetch_makes_no_more_than_its_depth():
    produced = []
    items = prefetch((produced.append(i) or i for i in itertools.count()), depth=3)
    assert next(items) == 0
    assert until(lambda: len(produced) >= 4)
    time.sleep(0.3)
    assert len(produced) <= 1 + 3 + 1  # taken, waiting, in the thread's hand
    items.close()


def test_an_error_comes_after_the_items_before_it():
    def broken():
        yield from (1, 2)
        raise UserError("no third one")

    items = prefetch(broken())
    assert [next(items), next(items)] == [1, 2]
    with pytest.raises(UserError, match="no third one"):
        next(items)


@pytest.mark.parametrize("ending", ["closed", "forgotten", "broken"])
def test_the_thread_ends_with_its_consumer(ending):
    before = set(threading.enumerate())
    items = prefetch(itertools.count(), depth=2)
    assert next(items) == 0
    (worker,) = set(threading.enumerate()) - before
    if ending == "closed":
        items.close()
    elif ending == "forgotten":
        del items
    else:
        with pytest.raises(ZeroDivisionError):
            items.throw(ZeroDivisionError())
    assert until(lambda: not worker.is_alive())

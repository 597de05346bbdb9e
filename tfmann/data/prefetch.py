"""Prefetching of items in a thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator


def prefetch(items: Iterator, depth: int = 8) -> Iterator:
    """Yields items that a thread computes up to `depth` in advance; raises the thread's errors."""
    ready: queue.Queue = queue.Queue(depth)
    stop = threading.Event()

    def put(item: tuple) -> bool:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for item in items:
                if not put((item, None, False)):
                    return
            put((None, None, True))
        except BaseException as error:  # handed to the consumer, who raises it
            put((None, error, True))

    threading.Thread(target=work, daemon=True).start()
    try:
        while True:
            item, error, ended = ready.get()
            if error is not None:
                raise error
            if ended:
                return
            yield item
    finally:
        stop.set()

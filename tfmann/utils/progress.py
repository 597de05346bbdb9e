"""A bar on a terminal that shows how far long work is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], object]]:
    """Shows a bar, unless standard error is no terminal; yields what counts one step."""
    with tqdm(desc=what, total=total, disable=None, leave=False) as bar:
        yield bar.update

"""Imports TensorFlow without what it says about itself meanwhile."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator

from tfmann.errors import print_message

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"  # 0 shows all, 3 nothing but fatal errors


def import_tensorflow() -> None:
    """Imports TensorFlow, which takes seconds, and says so at a terminal.

    What TensorFlow prints at start, such as that there are no CUDA libraries, is hidden unless
    TF_CPP_MIN_LOG_LEVEL is set to less than 3. Version 2.15 obeys that; later ones begin to obey
    when they are loaded.
    """
    if "tensorflow" in sys.modules:
        return
    os.environ.setdefault(_LEVEL, "3")
    if sys.stderr.isatty():
        print_message("loading TensorFlow")
    with _hidden_messages() if os.environ[_LEVEL] == "3" else contextlib.nullcontext():
        import tensorflow  # noqa: F401


@contextlib.contextmanager
def _hidden_messages() -> Iterator[None]:
    """Hides what C++ code writes to standard error, unless an exception ends the block."""
    sys.stderr.flush()
    standard_error = os.dup(2)
    with tempfile.TemporaryFile() as messages:
        os.dup2(messages.fileno(), 2)
        try:
            yield
        except BaseException:
            messages.seek(0)
            os.write(standard_error, messages.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(standard_error, 2)
            os.close(standard_error)

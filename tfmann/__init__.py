"""Memory-augmented neural machine translation.

Letters in docstrings, shape comments and einsums: B batch, S source length, T target length,
E embedding width, U controller units, D annotation width, V vocabulary, N memory slots, W slot
width, R read heads, H write heads, J shift taps, K beam width, I cache slots.
"""

from __future__ import annotations

import os
from importlib import metadata

__version__ = "0.2.0"

__all__ = [
    "Forced",
    "HParams",
    "Model",
    "Trace",
    "Translation",
    "UsageError",
    "UserError",
    "load",
]


def _choose_keras() -> None:
    """Makes TensorFlow 2.16 and later use Keras 2 (tf_keras): the cells are layers of Keras 2.

    TensorFlow reads the variable when `tf.keras` is first used. TensorFlow 2.15 has Keras 2 itself.
    """
    try:
        major, minor = metadata.version("tensorflow").split(".")[:2]
    except metadata.PackageNotFoundError:
        return
    if (int(major), int(minor)) >= (2, 16):
        os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")


_choose_keras()


def __getattr__(name: str):
    """Imports the parts that need TensorFlow at their first use."""
    if name in ("UsageError", "UserError"):
        from tfmann import errors

        return getattr(errors, name)
    if name in __all__:
        from tfmann import api

        return getattr(api, name)
    raise AttributeError(f"module 'tfmann' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Lists them too, for the completion of names in a shell or a notebook."""
    return sorted({*globals(), *__all__})

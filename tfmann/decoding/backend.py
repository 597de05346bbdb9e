"""The choice of the loop that runs a decoder's steps: tfa.seq2seq's, or one in plain TensorFlow.

tensorflow_addons has wheels for Python 3.9 to 3.11 and TensorFlow 2.15; the plain loop runs on
every TensorFlow.
"""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from tfmann.decoding import loop
from tfmann.errors import UserError


def decode(
    decoder: loop.Decoder, backend: str, maximum_iterations: tf.Tensor | None = None
) -> tuple[Any, Any, tf.Tensor]:
    """Runs a decoder's steps until all rows have finished.

    Args:
      decoder: the decoder.
      backend: tfa, plain, or auto: tfa where it can be imported.
      maximum_iterations: the greatest number of steps, above 0; None means no limit.

    Returns:
      outputs, each `[T, B, ...]`; the last state; the number of steps of each row.

    Raises:
      UserError: the backend is tfa, and tensorflow_addons cannot be imported.
    """
    addons = None if backend == "plain" else addons_or_none()
    if addons is not None:
        return addons.decode(decoder, maximum_iterations)
    if backend == "tfa":
        raise UserError(
            "decoder_backend=tfa needs tensorflow-addons 0.23, which runs on Python 3.9 to 3.11 "
            "with TensorFlow 2.15: set decoder_backend to auto or plain"
        )
    return loop.decode(decoder, maximum_iterations)


@functools.cache
def addons_or_none() -> Any:
    """Returns the module `decoding.addons`, or None if tensorflow_addons cannot be imported."""
    try:
        from tfmann.decoding import addons
    except ImportError:
        return None
    return addons

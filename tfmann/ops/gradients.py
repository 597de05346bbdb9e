"""Custom gradients of graphs that are trained; none of graphs that only translate or score.

TensorFlow registers every gradient of `tf.custom_gradient` that is traced in a graph under a name
of its own, for as long as the process lives. With it stay the graph and its variables, so each
compiled search of a server would take memory for good.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf

_Function = TypeVar("_Function", bound=Callable[..., Any])

_NEEDED = contextvars.ContextVar("gradients are needed", default=True)


def custom_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """Is `tf.custom_gradient`, except within `without_gradients`, where only results are computed.

    Args:
      function: maps tensors to results and the function of their gradient.
    """
    with_gradient = tf.custom_gradient(function)

    @functools.wraps(function)
    def run(*tensors: tf.Tensor) -> Any:
        if _NEEDED.get():
            return with_gradient(*tensors)
        results, _ = function(*map(tf.convert_to_tensor, tensors))
        return results

    return run


def without_gradients(function: _Function) -> _Function:
    """Returns a function whose results have no custom gradients, in a graph or outside of one.

    It is a new object for TensorFlow too, which warns where one function is traced often.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        token = _NEEDED.set(False)
        try:
            return function(*args, **kwargs)
        finally:
            _NEEDED.reset(token)

    return functools.partial(run)  # type: ignore[return-value]

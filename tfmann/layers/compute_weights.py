"""A module that computes with other tensors than its variables.

A decoder cell is written as if its weights had the type of its matrix products. Before a loop,
`compute_weights` reads every variable once, kernels as bfloat16 where training is mixed, and
`with_weights` returns the cell with these tensors in the place of its variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, TypeVar

import tensorflow as tf

Module = TypeVar("Module", bound=tf.Module)


def compute_weights(module: tf.Module, dtype: tf.DType) -> tuple[tf.Tensor, ...]:
    """Reads the variables of a module: matrices named `kernel` as `dtype`, others as they are."""
    return tuple(
        tf.cast(tf.convert_to_tensor(variable), dtype if _is_kernel(variable) else variable.dtype)
        for variable in _variables(module)
    )


def with_weights(module: Module, weights: Sequence[Any]) -> Module:
    """Returns a copy of a module with `weights` from `compute_weights`, or of the same structure.

    Attributes whose names begin with an underscore are shared with the original.
    """
    by_id = {id(v): weight for v, weight in zip(_variables(module), weights)}
    return _map(lambda variable: by_id[id(variable)], module)


def _variables(module: tf.Module) -> list[tf.Variable]:
    variables: dict[int, tf.Variable] = {}
    _map(lambda variable: variables.setdefault(id(variable), variable), module)
    return list(variables.values())


def _is_kernel(variable: tf.Variable) -> bool:
    return variable.shape.rank == 2 and variable.name.endswith("kernel:0")


def _map(function: Callable[[tf.Variable], Any], part: Any) -> Any:
    """Copies a structure of modules, lists and tuples, `function` applied to its variables."""
    if isinstance(part, tf.Variable):
        return function(part)
    if isinstance(part, tf.Module):
        copy = object.__new__(type(part))
        for name, value in vars(part).items():
            vars(copy)[name] = value if name.startswith("_") else _map(function, value)
        return copy
    if isinstance(part, list):
        return [_map(function, item) for item in part]
    if isinstance(part, tuple):
        items = [_map(function, item) for item in part]
        return part._make(items) if hasattr(part, "_make") else tuple(items)
    return part

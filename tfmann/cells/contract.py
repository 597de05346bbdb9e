"""What a step has to return, checked when it is traced: messages for whoever writes a cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from tfmann import config
from tfmann.cells.base import StepOutput
from tfmann.cells.diagnostics import SHAPES, select


def require_state(state: Any) -> None:
    """Checks the state before the first step.

    Raises:
      TypeError: a leaf is no float tensor `[B, n, ...]`; the message names it.
    """
    for name, leaf in _leaves(state):
        if not tf.is_tensor(leaf) or not leaf.dtype.is_floating:
            raise TypeError(f"{name}: every leaf of a state is a float tensor; it is {_type(leaf)}")
        if leaf.shape.rank is not None and leaf.shape.rank < 2:
            raise TypeError(
                f"{name} is {_text(leaf.shape)}; a leaf of a state has two axes or more: [B, 1]"
            )


def require_step(result: Any, before: Any, output_width: int) -> None:
    """Checks what a step returned.

    Args:
      result: what it returned.
      before: the state that it was given.
      output_width: the width of its output.

    Raises:
      TypeError: it is no `StepOutput`, or the output, the state or a diagnostic has another type or
        shape than it must have; the message names it.
    """
    _require_step_output(result)
    require_width("output", result.output, output_width)
    _require_float32("output", result.output)
    _require_same_state(result.state, before)
    _require_tensors(result.diagnostics, [result.output, *tf.nest.flatten(before)])
    _require_standard_shapes(result.diagnostics)


def recorded_shapes(
    step: Callable[[tf.Tensor, Any], StepOutput],
    inputs: tf.Tensor,
    state: Any,
    record: tuple[str, ...],
) -> Mapping[str, tf.Tensor]:
    """Returns tensors of the shapes that a step records, by name; the step itself is not used.

    Raises:
      TypeError: a step returns no `StepOutput`.
    """
    if not record:
        return {}
    result = step(inputs, state)
    _require_step_output(result)
    return select(result.diagnostics, record)


def require_alignments(cell: str, result: Any) -> None:
    """Raises TypeError if a cell attends to the source by its entry, and shows no alignments."""
    _require_step_output(result)
    if config.cell_spec(cell).has_alignments and "alignments" not in result.diagnostics:
        raise TypeError(
            f"the cell {cell!r} attends to the source by its entry in config/cells.py, and its "
            "diagnostics have no alignments: add them, or has_alignments=False to the entry"
        )


def require_width(name: str, value: tf.Tensor, width: int) -> None:
    """Raises TypeError if what a cell made is not `[B, width]`, as the cell's `NAME_width` says."""
    if not value.shape.is_compatible_with([None, width]):
        raise TypeError(f"{name} is {_text(value.shape)}; by the cell's {name}_width: [B, {width}]")


def _require_same_state(after: Any, before: Any) -> None:
    shapes = {name: leaf.shape for name, leaf in _leaves(before)}
    leaves = dict(_leaves(after))
    if list(leaves) != list(shapes):
        raise TypeError(
            f"a step returned a state with other parts than it was given: {', '.join(leaves)}; "
            f"expected {', '.join(shapes)}"
        )
    types = {name: leaf.dtype for name, leaf in _leaves(before)}
    for name, leaf in leaves.items():
        if leaf.dtype != types[name]:
            raise TypeError(
                f"{name} is of {leaf.dtype.name} after a step and of {types[name].name} before"
            )
        if not tf.TensorShape([None]).concatenate(shapes[name][1:]).is_compatible_with(leaf.shape):
            raise TypeError(
                f"{name} is {_text(leaf.shape)} after a step and {_text(shapes[name])} before"
            )


def _require_step_output(result: Any) -> None:
    if not isinstance(result, StepOutput):
        raise TypeError(
            f"a step returns StepOutput(output, state, diagnostics), not a {type(result).__name__}"
        )
    if not isinstance(result.diagnostics, Mapping):
        raise TypeError(
            "the diagnostics of a step are a dict of tensors, not a "
            f"{type(result.diagnostics).__name__}"
        )


def _require_float32(name: str, value: Any) -> None:
    if not tf.is_tensor(value) or value.dtype != tf.float32:
        raise TypeError(f"{name}: expected a float32 tensor; it is {_type(value)}")


def _require_tensors(diagnostics: Mapping[str, tf.Tensor], of_rows: list[tf.Tensor]) -> None:
    """Checks that diagnostics are float32 tensors with as many rows as the tensors `of_rows`."""
    rows = next((value.shape[0] for value in of_rows if value.shape[0] is not None), None)
    for name, value in diagnostics.items():
        _require_float32(f"the diagnostic {name}", value)
        if value.shape.rank == 0 or (value.shape.rank and value.shape[0] not in (None, rows)):
            raise TypeError(
                f"the diagnostic {name} has the shape {value.shape}: its first axis has to be that "
                "of the batch"
            )


def _require_standard_shapes(diagnostics: Mapping[str, tf.Tensor]) -> None:
    """Checks the diagnostics that have a standard name: the same letter is the same number."""
    sizes: dict[str, int] = {"1": 1}
    for name, value in diagnostics.items():
        letters = SHAPES.get(name)
        if letters is None:
            continue
        expected = f"{name}: expected [B, {', '.join(letters)}]"
        if value.shape.rank != 1 + len(letters):
            raise TypeError(f"{expected}, found {_text(value.shape)} (cells/diagnostics.py)")
        for letter, size in zip(letters, value.shape[1:]):
            known = sizes.setdefault(letter, size) if size is not None else None
            if known != size:
                raise TypeError(
                    f"{expected}, found {_text(value.shape)}, where {letter} is {known} "
                    "(cells/diagnostics.py)"
                )
    heads = sizes.get("R"), sizes.get("H"), sizes.get("R+H")
    if None not in heads and heads[0] + heads[1] != heads[2]:  # type: ignore[operator]
        raise TypeError(
            f"diagnostics of {heads[2]} heads R+H, with {heads[0]} read heads and {heads[1]} "
            "write heads (cells/diagnostics.py)"
        )


def _leaves(part: Any, name: str = "state") -> Iterator[tuple[str, Any]]:
    """Yields the leaves of a state in the order of `tf.nest.flatten`, with their names."""
    if isinstance(part, Mapping):
        for key in sorted(part):
            yield from _leaves(part[key], f"{name}[{key!r}]")
    elif isinstance(part, (tuple, list)):
        keys = getattr(part, "_fields", None)
        for number, item in enumerate(part):
            yield from _leaves(item, f"{name}.{keys[number]}" if keys else f"{name}[{number}]")
    else:
        yield name, part


def _type(value: Any) -> str:
    """Returns the type of a tensor as `of int32`, and what is none as it is."""
    return f"of {value.dtype.name}" if tf.is_tensor(value) else repr(value)


def _text(shape: tf.TensorShape) -> str:
    """Returns a shape as `[B, 3, ?]`."""
    if shape.rank is None:
        return "of unknown rank"
    axes = ["?" if size is None else str(size) for size in shape.as_list()]
    return f"[{', '.join(['B', *axes[1:]])}]"

"""Variables by name, and their values from the arrays of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable

from tfmann.errors import UserError
from tfmann.training.checkpoint import Arrays


def assign(variables: Sequence[Any], arrays: Arrays, where: str) -> None:
    """Sets every variable from the array of its name; `where` names the arrays in a message.

    Raises:
      UserError: names or shapes differ between the two; no variable was set.
    """
    named = by_name(variables)
    problems = [f"{name} is missing there" for name in named if name not in arrays]
    problems += [f"{name} is not in this model" for name in arrays if name not in named]
    problems += _shape_differences(named, arrays)
    if problems:
        omitted = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        raise UserError(f"{where} is another model's: {'; '.join(problems[:3])}{omitted}")
    for name, variable in named.items():
        variable.assign(arrays[name])


def assign_matching(
    variables: Sequence[Any],
    arrays: Arrays,
    where: str,
    ancestor: Callable[[str], str] = lambda name: name,
) -> tuple[list[str], list[str]]:
    """Sets the variables that have an array of their name or of their ancestor's.

    Args:
      variables: of the model to be initialised.
      arrays: of another model, by name.
      where: the name of that model in a message.
      ancestor: maps the name of a variable to that of the weight it starts as a copy of if the
        arrays lack its own name.

    Returns:
      the names that were set, as `NAME` or `NAME (a copy of ANCESTOR)`, and those that were not.

    Raises:
      UserError: shapes of the same name differ, or the two have no name in common.
    """
    named = by_name(variables)
    origins = {}
    for name in named:
        candidates = [source for source in (name, ancestor(name)) if source in arrays]
        if candidates:
            origins[name] = candidates[0]
    values = {name: arrays[origin] for name, origin in origins.items()}
    problems = _shape_differences(named, values)
    if problems or not values:
        reason = problems[0] if problems else "no weight there has a name of this model"
        raise UserError(f"{where} cannot start this model: {reason}")
    for name, value in values.items():
        named[name].assign(value)
    assigned = [n if n == o else f"{n} (a copy of {o})" for n, o in origins.items()]
    return assigned, [name for name in named if name not in values]


def by_name(variables: Sequence[Any]) -> dict[str, Any]:
    """Maps names, without TensorFlow's `:0`, to variables.

    Raises:
      ValueError: two have the same name.
    """
    names = [variable.name.split(":")[0] for variable in variables]
    named = dict(zip(names, variables))
    if len(named) != len(names):
        twice = ", ".join(name for name in named if names.count(name) > 1)
        raise ValueError(
            f"two weights have the same name: {twice}; a cell makes its weights with the "
            "VariableFactory that it is given, under different names"
        )
    return named


def _shape_differences(named: Mapping[str, Any], arrays: Arrays) -> list[str]:
    return [
        f"{name} is {list(arrays[name].shape)} there and {list(variable.shape)} here"
        for name, variable in named.items()
        if name in arrays and tuple(arrays[name].shape) != tuple(variable.shape)
    ]

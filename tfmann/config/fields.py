"""A setting's declaration: its default, its meaning and the values that it allows.

A part of the settings is a frozen dataclass that inherits `Settings`. Its fields are declared once,
with `field`; editors and mypy see their types, and `fields_of` lists them for flags and files.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from tfmann.errors import UsageError

T = TypeVar("T")

_TYPES: Mapping[str, type] = {"bool": bool, "int": int, "float": float, "str": str}
# The limits of every number: TensorFlow computes with int32 and float32.
_GREATEST: Mapping[type, float] = {int: 2**31 - 1, float: 3.4e38}


@dataclasses.dataclass(frozen=True)
class Field:
    """The rules of one setting.

    Attributes:
      type: bool, int, float or str.
      default: its value where none is given; None means "not given" and is then allowed.
      help: one sentence or two, for `--help`.
      kind: "architecture" (the shapes of a checkpoint depend on it), "data", "training" or
        "inference".
      minimum, maximum: the least and the greatest value of a number.
      below: the least number that is too great.
      choices: the strings that are allowed; None allows all.
      is_path: the value is a file or folder of this machine.
    """

    type: type
    default: Any
    help: str
    kind: str
    minimum: float | None = None
    maximum: float | None = None
    below: float | None = None
    choices: tuple[str, ...] | None = None
    is_path: bool = False

    def check(self, key: str, value: Any) -> Any:
        """Returns the value in its type, or raises UsageError naming the key and the rule."""
        if value is None and self.default is None:
            return None
        if self.type is float and type(value) is int:
            value = float(value) if abs(value) < 1e308 else math.inf  # float(10**400) is an error
        if self.type is int and isinstance(value, numbers.Integral) and type(value) is not bool:
            value = int(value)  # of NumPy
        if type(value) is not self.type:
            hint = f": leave it out, for {self.default!r}" if value is None else ""
            raise UsageError(f"{key}: expected {self.type.__name__}, got {value!r}{hint}")
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"{key}: expected a finite number, got {value!r}")
        if self.choices is not None and value not in self.choices:
            raise UsageError(f"{key}: {value!r} is not one of {', '.join(map(repr, self.choices))}")
        if self.type is int or self.type is float:
            self._check_range(key, value)
        return value

    def _check_range(self, key: str, value: Any) -> None:
        limit = _GREATEST[self.type]
        least = -limit if self.minimum is None else self.minimum
        greatest = limit if self.maximum is None else self.maximum
        if value < least:
            raise UsageError(f"{key}: {value!r} is below the least value {least}")
        if value > greatest:
            raise UsageError(f"{key}: {value!r} is above the greatest value {greatest}")
        if self.below is not None and value >= self.below:
            raise UsageError(f"{key}: {value!r} is not below {self.below}")


def field(
    default: T,
    help: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    below: float | None = None,
    choices: Sequence[str] | None = None,
    is_path: bool = False,
) -> T:
    """Declares a field of a `Settings` dataclass; the arguments are those of `Field`."""
    rules = {
        "help": help,
        "minimum": minimum,
        "maximum": maximum,
        "below": below,
        "choices": None if choices is None else tuple(choices),
        "is_path": is_path,
    }
    return dataclasses.field(default=default, metadata=rules)


@dataclasses.dataclass(frozen=True)
class Settings:
    """A part of the settings, immutable; its values are checked when it is made.

    Raises:
      UsageError: a value has the wrong type, is out of range or is none of the choices.
    """

    kind: ClassVar[str] = "training"  # the `Field.kind` of the fields that a class declares

    def __post_init__(self) -> None:
        """Checks every value; whole numbers become floats where a float is expected."""
        for key, rule in fields_of(type(self)).items():
            object.__setattr__(self, key, rule.check(key, getattr(self, key)))

    def as_dict(self) -> dict[str, Any]:
        """Returns every key with its value, in the order of declaration."""
        return {key: getattr(self, key) for key in fields_of(type(self))}


def check_declarations(record: type[Settings]) -> None:
    """Checks how the parts of a `Settings` class declare their fields.

    Raises:
      TypeError: two parts declare the same field, a part is no dataclass, or a default was given
        without `field`.
    """
    fields = {item.name: item for item in dataclasses.fields(record)}
    declared: dict[str, str] = {}
    for part in record.__mro__:
        annotations = vars(part).get("__annotations__", {}) if issubclass(part, Settings) else {}
        for key, kind in annotations.items():
            if str(kind).startswith("ClassVar"):
                continue
            if key not in fields:
                raise TypeError(f"{part.__name__} has to be a @dataclass(frozen=True): {key!r}")
            if "help" not in fields[key].metadata:
                raise TypeError(f"{part.__name__}: declare {key!r} by field(default, help)")
            if key in declared:
                raise TypeError(
                    f"the setting {key!r} is declared by {declared[key]} and by {part.__name__}: "
                    "inherit the class that has it, or take another name"
                )
            declared[key] = part.__name__


def fields_of(record: type[Settings]) -> Mapping[str, Field]:
    """Returns the fields of a `Settings` class by their keys, those of its bases included."""
    kinds = {
        key: part.kind
        for part in record.__mro__
        if issubclass(part, Settings)
        for key in vars(part).get("__annotations__", {})
    }
    return {
        item.name: Field(
            type=_TYPES[str(item.type).split(" | ")[0]],
            default=item.default,
            kind=kinds[item.name],
            **item.metadata,
        )
        for item in dataclasses.fields(record)
    }

"""The record of all settings of a run; `config.combinations` says which cannot go together."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tfmann.config import other_names
from tfmann.config.cells import cell_spec
from tfmann.config.combinations import AllSettings, check_combinations
from tfmann.config.fields import Field, check_declarations, fields_of
from tfmann.errors import UsageError


@dataclass(frozen=True)
class HParams(AllSettings):
    """The settings of a run, immutable and checked; results never live here.

    A function that reads a part of them is annotated with that part.

    Raises:
      UsageError: a value has the wrong type, is out of range, or two settings cannot go together.
    """

    def __post_init__(self) -> None:
        """Checks every value, then the combinations."""
        super().__post_init__()
        check_combinations(self)

    @property
    def attention_width(self) -> int:
        """A, the width of the additive attention: `attention_size`, or `num_units`."""
        return self.attention_size or self.num_units

    @property
    def reads_documents(self) -> bool:
        """True if a sentence's translation depends on the sentences before it."""
        return reads_documents(vars(self))

    @property
    def reads_translations(self) -> bool:
        """True if it depends on the translations of the sentences before it."""
        return reads_translations(vars(self))

    def replace(self, **changes: Any) -> HParams:
        """Returns a copy with some values changed; unknown keys are errors."""
        refuse_unknown(changes, where="replace()")
        return dataclasses.replace(self, **changes)


check_declarations(HParams)
FIELDS: Mapping[str, Field] = fields_of(HParams)


def reads_documents(settings: Mapping[str, Any]) -> bool:
    """Returns whether a sentence's translation depends on the sentences before it.

    Args:
      settings: of a run, as they were saved; older ones have no `neural_cache_size`.
    """
    return _has_neural_cache(settings) or cell_spec(settings["cell"]).reads_documents


def reads_translations(settings: Mapping[str, Any]) -> bool:
    """Returns whether it depends on the translations of the sentences before it."""
    return _has_neural_cache(settings) or cell_spec(settings["cell"]).has_cache


def _has_neural_cache(settings: Mapping[str, Any]) -> bool:
    return bool(settings.get("neural_cache_size"))


def refuse_unknown(keys: Iterable[str], where: str) -> None:
    """Raises UsageError, with a line for each key that is no setting."""
    unknown = unknown_keys(keys)
    if unknown:
        raise UsageError("\n".join(f"{where}: {message}" for message in unknown))


def unknown_keys(keys: Iterable[str]) -> list[str]:
    """Returns for each key that is no setting a message with advice or a near name."""
    return [_unknown(key) for key in keys if key not in FIELDS]


def _unknown(key: str) -> str:
    advice = other_names.advice(key)
    if advice:
        return f"there is no setting {key!r}: {advice}"
    near = difflib.get_close_matches(key, FIELDS, n=1, cutoff=0.5)
    return f"unknown key {key!r}" + (f"; did you mean {near[0]!r}?" if near else "")

"""The contents of a checkpoint's state.json: the kind of value under each key.

An attacker who can write the file can write its SHA-256 too, so every value is checked.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Callable

_ARCHIVE = re.compile(r"\w+\.npz")


def _is_count(value: Any, least: int = 0) -> bool:
    return type(value) is int and least <= value < 1 << 63


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _is_position(value: Any) -> bool:
    # a position of older versions lacks the number of batches of the epoch
    return isinstance(value, list) and len(value) in (2, 3) and all(map(_is_count, value))


def _is_history(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _are_digests(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _ARCHIVE.fullmatch(name) and isinstance(digest, str) for name, digest in value.items()
    )


_KINDS: dict[str, Callable[[Any], bool]] = {
    "step": _is_count,
    "position": _is_position,
    "best_bleu": _is_number,
    "best_step": lambda value: _is_count(value, -1),  # -1: none yet
    "stale_evaluations": _is_count,
    "rate_halvings": _is_count,
    "train_seconds": _is_number,
    "words": _is_count,
    "history": _is_history,
    "measure": lambda value: isinstance(value, dict),
    "document_order": lambda value: isinstance(value, str),
    "init_sha256": lambda value: isinstance(value, str),
    "between": lambda value: isinstance(value, bool),
    "sha256": _are_digests,
}
_ALWAYS = ("sha256",)
_TO_CONTINUE = ("step", "position", "best_step")


def problem_with(state: Mapping[str, Any]) -> str | None:
    """Describes what is wrong with a state, or returns None; unknown keys are ignored."""
    return _missing_key(state, _ALWAYS) or next(
        (
            f"{key} is {repr(value)[:40]}"
            for key, value in state.items()
            if key in _KINDS and not _KINDS[key](value)
        ),
        None,
    )


def problem_with_continuing(state: Mapping[str, Any], step: int) -> str | None:
    """Describes why training cannot continue from a valid state of the checkpoint of `step`."""
    problem = _missing_key(state, _TO_CONTINUE)
    if problem is None and state["step"] != step:
        return f"step is {state['step']}, expected {step}"
    return problem


def _missing_key(state: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((f"{key} is missing" for key in keys if key not in state), None)

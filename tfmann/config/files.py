"""Settings in files: flat JSON, read strictly, and saved with a run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tfmann.config.cells import CELLS
from tfmann.config.fields import fields_of
from tfmann.config.hparams import FIELDS, HParams, refuse_unknown, unknown_keys
from tfmann.errors import UsageError
from tfmann.utils.files import atomic_write

BASE = "base"  # the key that names a file of the same directory
# What runs are first compared by.
_MAIN = frozenset(
    ("cell", "encoder_type", "num_units", "num_layers", "embedding_size", "optimizer",
     "learning_rate", "batch_size", "dropout", "num_train_steps", "random_seed")
)  # fmt: skip

_DEFAULTS = {key: field.default for key, field in FIELDS.items()}


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a flat JSON object of hyper-parameters, its own values over those of its base.

    `"base": "base.json"` names a file of the same directory, which has no base itself. Every value
    is checked; whether they can go together is not.

    Raises:
      UsageError: the file or its base is missing, is not JSON, repeats a key, or has unknown
        keys or wrong values, of which the message names all.
    """
    values = _read_object(path)
    if BASE in values:
        base = _read_base(Path(path), values.pop(BASE))
        values = {**base, **values}
    return values


def _read_base(path: Path, name: Any) -> dict[str, Any]:
    """Reads the base `name` of the file `path`."""
    if not isinstance(name, str) or name in ("", ".", "..") or Path(name).name != name:
        raise UsageError(
            f"{path}: base: expected the name of a file in the same directory, got {name!r}"
        )
    base = path.with_name(name)
    if not base.exists():
        raise UsageError(f"{path}: its base {base} does not exist")
    values = _read_object(base)
    if BASE in values:
        raise UsageError(f"{base} is the base of {path} and cannot have a base itself")
    return values


def _read_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads one file; `base` is not looked up."""

    def refuse_repeated(items: list[tuple[str, Any]]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, value in items:
            if key in values:
                raise UsageError(f"{path}: the key {key!r} is given twice")
            values[key] = value
        return values

    try:
        text = Path(path).read_text(encoding="utf-8-sig")  # with or without a byte order mark
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a NUL in the name
        raise UsageError(f"cannot read the hparams file {path}: {error}") from None
    try:
        values = json.loads(text, object_pairs_hook=refuse_repeated)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise UsageError(f"{path}: expected one flat JSON object, got {type(values).__name__}")
    settings = {key: value for key, value in values.items() if key != BASE}
    faults = [*_wrong_values(settings), *unknown_keys(settings)]  # a cell before its settings
    if faults:  # all of them: a file of another program has many
        raise UsageError("\n".join(f"{path}: {fault}" for fault in faults))
    return values


def _wrong_values(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yields what is wrong with the values of known keys."""
    for key in (key for key in settings if key in FIELDS):
        try:
            FIELDS[key].check(key, settings[key])
        except UsageError as error:
            yield str(error)


def make(explicit: Mapping[str, Any], path: str | None = None) -> HParams:
    """Merges settings: explicit values over the JSON file over the defaults."""
    values = read_json(path) if path else {}
    refuse_unknown(explicit, where="command line")
    try:
        return HParams(**{**values, **explicit})
    except UsageError as error:
        raise UsageError(f"{path}: {error}" if path and not explicit else str(error)) from None


def to_json(hparams: HParams) -> str:
    """Returns all settings as JSON, as they are saved with a run and printed."""
    return json.dumps(hparams.as_dict(), indent=2)


def save(hparams: HParams, path: str | os.PathLike[str]) -> None:
    """Writes the settings as JSON; raises UserError if they cannot be written."""
    with atomic_write(path) as stream:
        stream.write(f"{to_json(hparams)}\n".encode())


def changes(saved: Mapping[str, Any], current: HParams) -> list[str]:
    """Returns the settings that differ from the saved ones, as `learning_rate 0.002 -> 0.1`."""
    before = {key: saved.get(key, field.default) for key, field in FIELDS.items()}
    return [
        f"{key} {before[key]} -> {value}"
        for key, value in current.as_dict().items()
        if value != before[key]
    ]


def chosen(hparams: HParams) -> dict[str, Any]:
    """Returns the main settings, and of the others those that differ from their defaults."""
    return {
        key: value
        for key, value in hparams.as_dict().items()
        if key in _MAIN or value != FIELDS[key].default
    }


def merge_saved(saved: Mapping[str, Any], explicit: Mapping[str, Any], where: str) -> HParams:
    """Merges explicit values with those that a run was saved with.

    Its architecture must stay, and the direction in which it translates.

    Raises:
      UsageError: an architecture key differs from the saved one, `src` and `tgt` are the other way
        round, or a key is unknown.
    """
    refuse_unknown(explicit, where="settings")
    changed = [
        f"{key}={explicit[key]!r} (saved: {saved.get(key, FIELDS[key].default)!r})"
        for key in explicit
        if FIELDS[key].kind == "architecture"
        and explicit[key] != saved.get(key, FIELDS[key].default)
    ]
    merged = {**saved, **explicit}
    before, after = ({**_DEFAULTS, **values}["tgt_max_len"] for values in (saved, merged))
    if before != after and _has_window_of_targets({**_DEFAULTS, **saved}):
        merged["self_attention_window"] = before + 1
    source, target = saved.get("src"), saved.get("tgt")
    if source != target and (merged.get("src"), merged.get("tgt")) == (target, source):
        # other suffixes may be new names of the same text
        changed += [f"src={target!r} (saved: {source!r})", f"tgt={source!r} (saved: {target!r})"]
    if changed:
        raise UsageError(
            f"{where} holds a model with other settings: {', '.join(changed)}. "
            "Use another out_dir, or keep the saved values."
        )
    return make(merged)


def _has_window_of_targets(settings: Mapping[str, Any]) -> bool:
    """Returns whether a model's self-attention sees as many words as training targets may have."""
    cell = CELLS.get(settings["cell"])
    is_read = cell is not None and "self_attention_window" in fields_of(cell.options)
    return is_read and not settings["self_attention_window"]

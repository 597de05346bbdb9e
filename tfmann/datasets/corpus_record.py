"""The record of a prepared corpus, `data.json`: what it was made from, and what a run needs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from tfmann.errors import UsageError, UserError
from tfmann.utils.files import atomic_write, file_digest, open_binary

RECORD = "data.json"
_PATHS = ("train_prefix", "dev_prefix", "test_prefix", "vocab_prefix", "subword_model")


def read_record(directory: str) -> dict[str, Any]:
    """Returns the record of a prepared folder, or an empty one if there is none.

    Raises:
      UserError: the record is damaged.
    """
    path = os.path.join(directory, RECORD)
    if not os.path.exists(path):
        return {}
    with open_binary(path) as stream:
        try:
            record = json.load(stream)
            for part in ("settings", "inputs", "splits", "recipe"):
                record[part].keys()
            record.get("files", {}).keys()
            record["recipe"]["source"], record["recipe"]["target"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UserError(f"{path} is damaged: delete it, and prepare the corpus again") from None
    return record


def load_settings(directory: str) -> dict[str, Any]:
    """Returns the settings of a run on a prepared folder, its paths joined to the folder.

    Raises:
      UsageError: the folder has no record that can be read.
      UserError: a file has changed since it was prepared, or is gone.
    """
    record = read_record(directory)
    if not record:
        raise UsageError(f"{directory} holds no {RECORD}: `tfmann prepare` writes it")
    changed = changed_file(record, directory)
    if changed:
        raise UserError(
            f"{changed} is not what `tfmann prepare` wrote: give that command once more, which "
            "prepares it again"
        )
    settings = dict(record["settings"])
    for key in _PATHS:
        if key in settings:
            settings[key] = os.path.join(directory, settings[key])
    return settings


def write_record(record: Mapping[str, Any], directory: str) -> None:
    """Writes the record of a prepared folder."""
    with atomic_write(os.path.join(directory, RECORD)) as stream:
        stream.write(json.dumps(record, indent=1).encode())


def changed_file(record: Mapping[str, Any], directory: str) -> str:
    """Returns the path of a file that is not as it was recorded, or an empty text."""
    for name, digest in record.get("files", {}).items():
        path = os.path.join(directory, name)
        if not os.path.isfile(path) or file_digest(path) != digest:
            return path
    return ""


def file_digests(directory: str, names: Iterable[str]) -> dict[str, str]:
    """Returns the SHA-256 of those files that are there, by name."""
    return {
        name: file_digest(os.path.join(directory, name))
        for name in sorted(names)
        if os.path.exists(os.path.join(directory, name))
    }

"""The record of a datastore: of which files, vocabularies and weights its arrays are.

datastore.json also has the shapes of the arrays. A model with other vocabularies or, where the
folder has keys, with other weights is refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from tfmann.errors import UserError
from tfmann.utils.checksummed_json import read_checked
from tfmann.utils.files import file_digest, read_bytes

FORMAT = 1
_RECORD = "datastore.json"


def record_path(folder: str) -> str:
    """Returns the path of a folder's record."""
    return os.path.join(folder, _RECORD)


def read_record(folder: str) -> dict[str, Any]:
    """Reads the record of a datastore.

    Raises:
      UserError: the folder has none, it is damaged or of another version, or one of the files that
        the datastore was made of has changed.
    """
    if not os.path.exists(record_path(folder)):
        raise UserError(
            f"{folder} is no datastore: there is no {_RECORD} in it; expected a folder that "
            "`tfmann datastore` made, or two files, SOURCE,TARGET"
        )
    try:
        record = read_checked(read_bytes(record_path(folder)))
    except ValueError:
        record = None
    if record is None:
        raise UserError(f"{record_path(folder)} is damaged: make the datastore again")
    if record.get("tfmann_datastore") != FORMAT:
        raise UserError(
            f"{folder} is a datastore of version {record.get('tfmann_datastore')}, and this tfmann "
            f"reads version {FORMAT}: make it again with `tfmann datastore`"
        )
    for path, digest in record["files"].items():
        if os.path.isfile(path) and file_digest(path) != digest:
            raise UserError(
                f"{path} has changed since the datastore {folder} was made of it: make it again "
                "with `tfmann datastore`"
            )
    return record


def require_same_text(folder: str, record: Mapping[str, Any], text: Sequence[str]) -> None:
    """Raises UserError if the ids of a datastore are of other vocabularies or segmenters."""
    if list(text) != record["text"]:
        raise UserError(
            f"the datastore {folder} has the ids of another model's vocabularies or subwords: make "
            "one for this model with `tfmann datastore`"
        )

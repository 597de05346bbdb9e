"""JSON records with their own checksum, which shows whether they are as they were written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_CHECKSUM = "sha256_of_this"


def add_checksum(record: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a record of JSON types with its SHA-256 as a further key."""
    return {**record, _CHECKSUM: _digest(record)}


def read_checked(text: str | bytes) -> dict[str, Any] | None:
    """Reads a record with a checksum; returns None if the two do not agree.

    Raises:
      ValueError: the text is no JSON record with a checksum.
    """
    try:
        record = json.loads(text)
        expected = record.pop(_CHECKSUM)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise ValueError("not a JSON record with a checksum") from error
    return record if _digest(record) == expected else None


def _digest(record: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()

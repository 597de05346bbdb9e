"""JSON records that know whether they are as they were written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_SEAL = "sha256_of_this"


def seal(body: Mapping[str, Any]) -> dict[str, Any]:
    """A record, of JSON types, with its own SHA-256."""
    return {**body, _SEAL: _digest(body)}


def unseal(text: str | bytes) -> dict[str, Any] | None:
    """Reads a sealed record; None if it is not as it was written.

    Raises:
      ValueError: it is no sealed record at all.
    """
    try:
        body = json.loads(text)
        claimed = body.pop(_SEAL)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise ValueError("no sealed record") from error
    return body if _digest(body) == claimed else None


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()

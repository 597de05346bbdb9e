"""The folder of an export: written beside, and put in its place when complete.

saved_model.pb and variables/ are the SavedModel; assets.extra/tfmann.json says what it was made of
and what its signatures are.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from tfmann import temporary
from tfmann.corpus.files import reason, swap
from tfmann.errors import UserError

FACTS = os.path.join("assets.extra", "tfmann.json")  # a folder that servers leave alone
FORMAT = 1  # of that file


def require_usable(folder: str) -> None:
    """Raises UserError where something stands that is no earlier export and no empty folder."""
    try:
        usable = not os.path.lexists(folder) or not os.listdir(folder) or _is_export(folder)
    except OSError as error:
        raise UserError(f"cannot export to {folder}: {error.strerror}") from None
    if not usable:
        raise UserError(f"{folder} holds other files than an export: give another --export_dir")


@contextlib.contextmanager
def replacing(folder: str) -> Iterator[str]:
    """A folder to write to, which takes the place of `folder` if all went well.

    A kill leaves the earlier export whole, under its own name or, between two renames, with `.old`
    after it.

    Raises:
      UserError: it cannot be written, or what stands there is no export.
    """
    require_usable(folder)
    target = os.path.realpath(folder)
    try:
        with temporary.folder(target) as unfinished:
            yield unfinished
            for path in Path(unfinished).rglob("*"):
                if path.is_file():
                    temporary.sync(path)
            swap(unfinished, target)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise UserError(f"cannot export to {folder}: {reason(error)}") from None


def _is_export(folder: str) -> bool:
    try:
        facts = json.loads(Path(folder, FACTS).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(facts, dict) and "tfmann_export" in facts

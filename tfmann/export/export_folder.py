"""The folder of an export, written under a temporary name and renamed when complete.

saved_model.pb and variables/ are the SavedModel; assets.extra/tfmann.json describes its settings
and signatures.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from tfmann.errors import UserError
from tfmann.utils import atomic_files
from tfmann.utils.files import error_reason

FACTS = os.path.join("assets.extra", "tfmann.json")  # servers ignore this folder
FORMAT = 1  # version of that file


def require_usable(folder: str) -> None:
    """Raises UserError if the path exists and is neither an earlier export nor an empty folder."""
    try:
        usable = not os.path.lexists(folder) or not os.listdir(folder) or _is_export(folder)
    except OSError as error:
        raise UserError(f"cannot export to {folder}: {error.strerror}") from None
    if not usable:
        raise UserError(f"{folder} holds other files than an export: give another --export_dir")


@contextlib.contextmanager
def new_export(folder: str) -> Iterator[str]:
    """Yields a temporary folder, which replaces `folder` if the block ends without an error.

    A kill leaves the earlier export complete, under its name or, between two renames, under a
    temporary one.

    Raises:
      UserError: it cannot be written, or is neither an export nor empty.
    """
    require_usable(folder)
    target = os.path.realpath(folder)
    try:
        with atomic_files.temporary_folder(target) as unfinished:
            yield unfinished
            for path in Path(unfinished).rglob("*"):
                if path.is_file():
                    atomic_files.sync(path)
            atomic_files.swap_folder(unfinished, target)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise UserError(f"cannot export to {folder}: {error_reason(error)}") from None


def _is_export(folder: str) -> bool:
    try:
        facts = json.loads(Path(folder, FACTS).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(facts, dict) and "tfmann_export" in facts

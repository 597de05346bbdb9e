"""One checkpoint: a folder of NumPy archives, written under another name and checked when read.

    step-00012000/weights.npz     every weight by name ("model/cell/memory_kernel")
    step-00012000/optimizer.npz   the optimizer's slots by name, to continue training
    step-00012000/documents.npz   the caches of the documents in progress, of models with a cache
    step-00012000/state.json      step, position in the data, history; SHA-256 of the other files

A folder that has its final name is complete. `np.load` opens the archives; nothing in them is
pickled.
"""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable

import numpy as np

from tfmann.errors import UserError
from tfmann.training.checkpoint_state import problem_with
from tfmann.utils.array_archive import write_archive
from tfmann.utils.atomic_files import replace_folder, sync_folder
from tfmann.utils.checksummed_json import add_checksum, read_checked
from tfmann.utils.files import error_reason, stream_digest, write_json
from tfmann.utils.run_folder import present_folder, weights_folder

Arrays = Mapping[str, np.ndarray]


class Unreadable(UserError):
    """A checkpoint is missing, truncated or altered."""


def write(
    folder: str,
    weights: Arrays,
    optimizer: Arrays | None,
    state: Mapping,
    documents: Arrays | None = None,
) -> None:
    """Writes a checkpoint; an older one in that folder is replaced when the new one is on disk.

    Args:
      folder: the checkpoint's folder.
      weights: by name.
      optimizer: its slots by name, if training is to continue from here.
      state: JSON types.
      documents: the caches of the documents in progress, if there are any.

    Raises:
      UserError: the disk is full or not writable; an older checkpoint there is unchanged.
    """
    temporary = f"{folder}.tmp"  # left by a kill if it exists: one process writes at a time
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        os.makedirs(temporary)
        parts = {"weights.npz": weights}
        if optimizer is not None:
            parts["optimizer.npz"] = optimizer
        if documents:
            parts["documents.npz"] = documents
        digests = {
            name: _write_archive(os.path.join(temporary, name), part)
            for name, part in parts.items()
        }
        record = add_checksum({**state, "sha256": digests})
        with open(os.path.join(temporary, "state.json"), "w", encoding="utf-8") as stream:
            json.dump(record, stream, indent=1)
            stream.flush()
            os.fsync(stream.fileno())
        sync_folder(temporary)
        replace_folder(temporary, folder)
    except OSError as error:
        raise UserError(
            f"cannot write the checkpoint {folder}: {error_reason(error)}. Earlier checkpoints are "
            "unchanged; make room (or repair the folder) and repeat the command."
        ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def weights_sha256(folder: str) -> str:
    """Returns the SHA-256 of a checkpoint's file of weights, as its state has it."""
    return str(read_state(folder)["sha256"]["weights.npz"])


def _write_archive(path: str, arrays: Arrays) -> str:
    """Writes arrays by name; returns the file's SHA-256."""
    with open(path, "wb") as stream:
        write_archive(stream, arrays)
        stream.flush()
        os.fsync(stream.fileno())
    return _archive_digest(path)


def _archive_digest(path: str) -> str:
    with open(path, "rb") as stream:  # not `file_digest`, whose errors are for files of users
        return stream_digest(stream)


def read_state(folder: str) -> dict[str, Any]:
    """Reads and verifies `state.json`.

    Raises:
      Unreadable: it is missing, altered, or not the state of a checkpoint.
    """
    path = os.path.join(folder, "state.json")
    try:
        state = read_checked(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise Unreadable(f"{path} is missing or damaged") from None
    if state is None:
        raise Unreadable(f"{path} is not as it was written")
    problem = problem_with(state)
    if problem is not None:
        raise Unreadable(f"{path} is not the state of a checkpoint: {problem}")
    return state


def write_state(folder: str, state: Mapping[str, Any]) -> None:
    """Changes the state of a checkpoint; other keys and the archives stay as they are.

    Args:
      folder: the checkpoint's folder.
      state: the keys to change.

    Raises:
      Unreadable: the folder is not a checkpoint.
      UserError: the disk is full or not writable; the state is unchanged.
    """
    record = add_checksum({**read_state(folder), **state})
    write_json(os.path.join(folder, "state.json"), record)


def read_arrays(folder: str, name: str = "weights") -> dict[str, np.ndarray]:
    """Reads and verifies one archive of a checkpoint.

    Raises:
      Unreadable: it is missing or not as it was written.
    """
    path = os.path.join(folder, f"{name}.npz")
    recorded = read_state(folder)["sha256"].get(f"{name}.npz")
    try:
        if _archive_digest(path) != recorded:
            raise Unreadable(f"{path} is not as it was written")
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError):
        raise Unreadable(f"{path} is missing or damaged") from None


def existing_folder(folder: str, log: Callable[[str], None]) -> str:
    """Returns a checkpoint's folder as `present_folder` does, and logs the use of an `.old`.

    For a run's folder this is its best checkpoint.
    """
    folder = weights_folder(folder)
    present = present_folder(folder)
    if present != folder:
        log(f"{folder} was being replaced when a run was stopped: using {present}, the one before")
    return present

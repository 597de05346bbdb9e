"""The arrays of a datastore: NumPy files in a folder, which are mapped into memory for reading."""

from __future__ import annotations

import contextlib
import json
import os
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tfmann.data.datastore_record import FORMAT, record_path
from tfmann.errors import UserError
from tfmann.utils import atomic_files
from tfmann.utils.checksummed_json import add_checksum
from tfmann.utils.files import error_reason

KEYS = "keys"  # the array of all readouts, which a folder need not have
ARRAYS = (
    "source_ids", "source_starts", "target_ids", "target_starts",
    "index_starts", "index_sentences", "index_scores",
)  # fmt: skip
# What NumPy raises for a file that is damaged; it reads a header as Python, token by token.
_DAMAGE = (OSError, ValueError, EOFError, tokenize.TokenError)


@contextlib.contextmanager
def new_folder(target: str) -> Iterator[str]:
    """Yields a temporary folder, which replaces `target` if the block ends without an error.

    Raises:
      UserError: it cannot be written, or is neither a datastore nor empty.
    """
    require_usable(target)
    try:
        with atomic_files.temporary_folder(os.path.realpath(target)) as unfinished:
            yield unfinished
            for path in Path(unfinished).iterdir():
                atomic_files.sync(path)
            atomic_files.swap_folder(unfinished, os.path.realpath(target))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise UserError(f"cannot write the datastore {target}: {error_reason(error)}") from None


def require_usable(target: str) -> None:
    """Raises UserError if a path exists and holds anything but a datastore, which is replaced."""
    try:
        names = os.listdir(target) if os.path.lexists(target) else []
    except OSError as error:
        raise UserError(f"cannot write the datastore {target}: {error.strerror}") from None
    record = os.path.basename(record_path(target))
    own = {record, *(f"{name}.npy" for name in (*ARRAYS, KEYS))}
    others = sorted(
        name for name in names if name not in own or os.path.isdir(os.path.join(target, name))
    )
    if others or (names and record not in names):
        listed = ", ".join(others[:3]) or "arrays without their record"
        raise UserError(
            f"{target} holds other files than a datastore ({listed}), which would be lost: give "
            "another --output"
        )


def save(folder: str, arrays: Mapping[str, np.ndarray], origin: Mapping[str, Any]) -> None:
    """Writes arrays and their record into a folder of `new_folder`.

    Args:
      folder: where.
      arrays: by the names of their files; one that is in the folder already is only recorded.
      origin: the other keys of the record: `text`, `files`, `left_out`, and `weights` if there are
        keys.
    """
    shapes = {}
    for name, array in arrays.items():
        if not os.path.exists(_array_path(folder, name)):
            np.save(_array_path(folder, name), array, allow_pickle=False)
        shapes[name] = [str(array.dtype), list(array.shape)]
    record = {"tfmann_datastore": FORMAT, **origin, "arrays": shapes}
    Path(record_path(folder)).write_text(json.dumps(add_checksum(record), indent=1), "utf-8")


def new_array(folder: str, name: str, dtype: str, shape: tuple[int, ...]) -> np.memmap:
    """Creates an array in a folder of `new_folder`, to be filled in part by part.

    Raises:
      OSError: the disk has no room for it. A write into the mapped file would kill the process.
    """
    path = _array_path(folder, name)
    array = np.lib.format.open_memmap(path, "w+", np.dtype(dtype), shape)
    with open(path, "r+b") as stream:
        os.posix_fallocate(stream.fileno(), 0, os.fstat(stream.fileno()).st_size)
    return array


def map_arrays(folder: str, record: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Maps the arrays of a datastore into memory, for reading, by their names.

    Raises:
      UserError: one is missing or damaged.
    """
    arrays = {}
    for name, (dtype, shape) in record["arrays"].items():
        path = _array_path(folder, name)
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except _DAMAGE as error:
            raise UserError(f"cannot read {path}: {error_reason(error)}") from None
        if [str(array.dtype), list(array.shape)] != [dtype, shape]:
            raise UserError(
                f"{path} is damaged: expected {dtype} {shape}, got {array.dtype} "
                f"{list(array.shape)}; make the datastore again"
            )
        arrays[name] = array
    return arrays


def _array_path(folder: str, name: str) -> str:
    return os.path.join(folder, f"{name}.npy")

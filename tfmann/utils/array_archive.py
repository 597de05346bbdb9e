"""Archives of arrays, in the format of `numpy.savez`."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from typing import BinaryIO

import numpy as np


def write_archive(
    stream: BinaryIO, arrays: Mapping[str, np.ndarray], compressed: bool = False
) -> None:
    """Writes arrays by name.

    `numpy.savez` would pickle objects, and leave its archive open when the disk is full.

    Raises:
      OSError: the stream cannot be written to.
      ValueError: an array holds objects.
    """
    compression = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, value in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asarray(value), allow_pickle=False)

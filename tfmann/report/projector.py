"""The slots of a memory as points, for TensorBoard's projector.

A run's folder has, for each watched sentence, a table of vectors and one of labels; the projector
finds them by `projector_config.pbtxt`. They are of the last evaluation: there is no slider.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfmann.corpus.files import replacing, write_lines
from tfmann.report.drawing import without_controls

if TYPE_CHECKING:
    import numpy as np

CONFIG = "projector_config.pbtxt"
_VECTORS = re.compile(r"memory_(\d+)\.tsv")


def write(log_dir: str, index: int, labels: Sequence[str], vectors: np.ndarray) -> None:
    """Writes the slots of one sentence, in the place of those that were there.

    Args:
      log_dir: folder of the event files.
      index: which sentence.
      labels: n of them, shown beside the points.
      vectors: [n, W].

    Raises:
      UserError: a file cannot be written.
    """
    place = os.path.join(log_dir, f"memory_{index}")
    numbers = ("\t".join(f"{value:.6g}" for value in row) for row in vectors)
    write_lines(f"{place}_labels.tsv", map(_label, labels))
    write_lines(f"{place}.tsv", numbers)
    found = sorted(int(m[1]) for name in os.listdir(log_dir) if (m := _VECTORS.fullmatch(name)))
    with replacing(os.path.join(log_dir, CONFIG)) as stream:
        stream.write("".join(map(_embedding, found)).encode())


def _embedding(index: int) -> str:
    return (
        "embeddings {\n"
        f'  tensor_name: "memory of sentence {index}"\n'
        f'  tensor_path: "memory_{index}.tsv"\n'
        f'  metadata_path: "memory_{index}_labels.tsv"\n'
        "}\n"
    )


def _label(text: str) -> str:
    """A line of a table of one column, which has no heading; none of them may be empty."""
    return re.sub(r"[\t\r\n]", " ", without_controls(text)) or " "

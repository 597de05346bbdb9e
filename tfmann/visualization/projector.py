"""The slots of a memory as points in TensorBoard's projector.

For each watched sentence a run's folder has a table of vectors and one of labels, which the
projector finds by `projector_config.pbtxt`. They are from the last evaluation: there is no slider.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfmann.data.text_files import write_lines
from tfmann.utils.files import atomic_write
from tfmann.visualization.drawing import without_controls

if TYPE_CHECKING:
    import numpy as np

CONFIG = "projector_config.pbtxt"
_VECTORS = re.compile(r"memory_(\d+)\.tsv")


def write(log_dir: str, index: int, labels: Sequence[str], vectors: np.ndarray) -> None:
    """Writes the slots of one sentence, replacing earlier ones.

    Args:
      log_dir: folder of the event files.
      index: of the sentence.
      labels: of the n points.
      vectors: [n, W].

    Raises:
      UserError: a file cannot be written.
    """
    prefix = os.path.join(log_dir, f"memory_{index}")
    numbers = ("\t".join(f"{value:.6g}" for value in row) for row in vectors)
    write_lines(f"{prefix}_labels.tsv", map(_label, labels))
    write_lines(f"{prefix}.tsv", numbers)
    matches = map(_VECTORS.fullmatch, os.listdir(log_dir))
    sentences = sorted(int(match[1]) for match in matches if match)
    with atomic_write(os.path.join(log_dir, CONFIG)) as stream:
        stream.write("".join(map(_embedding, sentences)).encode())


def _embedding(index: int) -> str:
    return (
        "embeddings {\n"
        f'  tensor_name: "memory of sentence {index}"\n'
        f'  tensor_path: "memory_{index}.tsv"\n'
        f'  metadata_path: "memory_{index}_labels.tsv"\n'
        "}\n"
    )


def _label(text: str) -> str:
    """Returns a label as a line of a table with one column, where no line may be empty."""
    return re.sub(r"[\t\r\n]", " ", without_controls(text)) or " "

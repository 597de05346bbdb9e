"""The file of the setting `lexical_memory`: a table of word translations and learned weights.

A NumPy archive of one version, which `tfmann memorize` writes. Its record says of which text,
vocabularies and model weights it is.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tfmann.data.translation_table import TranslationTable
from tfmann.errors import UserError
from tfmann.utils.array_archive import write_archive
from tfmann.utils.files import PathLike, atomic_write, open_binary

FORMAT = 1
WEIGHTS = ("element_kernel", "query_kernel", "score_vector")
_TABLE = ("source", "target", "count")
_KEYS = ("tfmann_lexical_memory", "text", "model", "ranks")
# What NumPy raises for a file that is damaged or something else. An array alone is no context
# manager, which is an AttributeError up to Python 3.10.
_DAMAGE = (
    OSError, ValueError, EOFError, KeyError, TypeError, AttributeError, NotImplementedError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


class LexicalMemory(NamedTuple):
    """The content of a file.

    Attributes:
      table: of word translations.
      weights: of the attention, by the names `WEIGHTS`.
      record: JSON types: `text`, the fingerprints of vocabularies and segmenters; `model`, the
        digest of the model's weights; `ranks`; and what else the writer has to say.
    """

    table: TranslationTable
    weights: dict[str, np.ndarray]
    record: dict[str, Any]


def write(name: PathLike, memory: LexicalMemory) -> None:
    """Writes a memory; raises UserError if it cannot."""
    record = {"tfmann_lexical_memory": FORMAT, **memory.record}
    arrays: Mapping[str, Any] = {
        **{key: getattr(memory.table, key) for key in _TABLE},
        **memory.weights,
        "record": np.array(json.dumps(record)),
    }
    with atomic_write(name) as stream:
        write_archive(stream, arrays, compressed=True)


def read(name: PathLike) -> LexicalMemory:
    """Reads a memory.

    Raises:
      UserError: the file is missing, damaged, of another version or no such memory.
    """
    with open_binary(name) as stream:
        try:
            with np.load(stream, allow_pickle=False) as archive:
                arrays = {key: archive[key] for key in (*_TABLE, *WEIGHTS, "record")}
            record = json.loads(str(arrays.pop("record")))
            missing = [key for key in _KEYS if key not in record]
        except _DAMAGE:
            missing = ["all"]
    if missing:
        raise UserError(
            f"{name} is no lexical memory, or is damaged: make it with `tfmann memorize`"
        )
    if record["tfmann_lexical_memory"] != FORMAT:
        raise UserError(
            f"{name} is a lexical memory of version {record['tfmann_lexical_memory']}, and this "
            f"tfmann reads version {FORMAT}: make it again with `tfmann memorize`"
        )
    source, target, count = (arrays[key] for key in _TABLE)
    table = TranslationTable(source, target, count, record["ranks"])
    return LexicalMemory(table, {key: arrays[key] for key in WEIGHTS}, record)


def require_same_model(
    name: PathLike, record: Mapping[str, Any], text: list[str], digest: str
) -> None:
    """Raises UserError if a memory is of other vocabularies or weights than those of a model."""
    if record["text"] != text:
        raise UserError(
            f"the lexical memory {name} has the ids of another model's vocabularies or subwords: "
            "make one for this model with `tfmann memorize`"
        )
    if record["model"] != digest:
        raise UserError(
            f"the lexical memory {name} was learned with other weights than those of this model: "
            "make one for it with `tfmann memorize`"
        )

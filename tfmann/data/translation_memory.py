"""Translation memories: pairs of sentences as ids, with an index of their source side.

They are read from two text files, or mapped from a folder that `tfmann datastore` made of them.
"""

from __future__ import annotations

import itertools
import os
from typing import NamedTuple

import numpy as np

from tfmann.data import datastore_folder, datastore_record, retrieval
from tfmann.data.memory_files import file_pair
from tfmann.data.retrieval import Index, Sentences
from tfmann.data.text_encoder import LanguagePair
from tfmann.data.text_files import iter_parallel
from tfmann.data.vocab import UNK_ID
from tfmann.errors import UserError

_HITS = 64  # that are ranked by similarity, as in knn-box


class TranslationMemory(NamedTuple):
    """N pairs of sentences, none of them with an empty side."""

    sources: Sentences
    targets: Sentences  # without `</s>`
    source_index: Index
    left_out: int  # pairs with an empty side
    keys: np.ndarray | None = None  # [all entries, R] of a datastore that has them
    weights: str | None = None  # the digest of the model whose readouts the keys are

    def retrieve(self, ids: list[int], count: int) -> list[int]:
        """Returns the numbers of at most `count` pairs, that with the most similar source first."""
        return retrieval.retrieve(ids, self.sources, self.source_index, count, max(count, _HITS))

    def pair(self, number: int) -> tuple[list[int], list[int]]:
        """Returns the ids of a pair."""
        return self.sources.sentence(number).tolist(), self.targets.sentence(number).tolist()


def read(source: str, target: str, languages: LanguagePair) -> TranslationMemory:
    """Reads a memory from two files; pairs with an empty side are left out.

    Raises:
      UserError: the files cannot be used: see `iter_parallel`; no pair is left, no token of a side
        is in the model's vocabulary, or the files seem to be in the wrong order.
    """
    sources, targets, left_out = [], [], 0
    for pair in iter_parallel(source, target):
        ids = languages.source.encode(pair.source), languages.target.encode(pair.target)
        if not (all(ids) and pair.source.strip() and pair.target.strip()):
            left_out += 1
            continue
        sources.append(ids[0])
        targets.append(ids[1])
    if not sources:
        raise UserError(f"{source} and {target}: every pair has an empty side")
    packed = retrieval.pack(sources), retrieval.pack(targets)
    _refuse_wrong_order(source, target, languages, packed)
    for side, path, name in zip(packed, (source, target), ("source", "target")):
        if np.all(side.ids == UNK_ID):
            raise UserError(
                f"{path}: no token of it is in the model's {name} vocabulary; expected "
                "translation_memory=SOURCE,TARGET, text in the languages of the model and "
                "tokenised as its training text was"
            )
    index = retrieval.build_index(packed[0], len(languages.source.vocabulary))
    return TranslationMemory(*packed, index, left_out)


def _refuse_wrong_order(
    source: str, target: str, languages: LanguagePair, packed: tuple[Sentences, Sentences]
) -> None:
    """Raises UserError if most tokens of both files are unknown, but few of them as the other."""
    if min(np.mean(side.ids == UNK_ID) for side in packed) < 0.5:
        return
    first = list(itertools.islice(iter_parallel(source, target), 100))
    exchanged = [languages.source.encode(pair.target) for pair in first]
    exchanged += [languages.target.encode(pair.source) for pair in first]
    ids = np.array([token for sentence in exchanged for token in sentence])
    if ids.size and np.mean(ids == UNK_ID) < 0.25:
        raise UserError(
            f"translation_memory={source},{target}: the files seem to be in the wrong order; "
            f"expected SOURCE,TARGET, such as {target},{source}"
        )


def load(setting: str, languages: LanguagePair) -> TranslationMemory:
    """Reads the memory that a setting names, from two files or mapped from a folder.

    Raises:
      UsageError: the setting names neither.
      UserError: as `read`; or the folder is of another model's vocabularies, or damaged.
    """
    if not os.path.isdir(setting):
        return read(*file_pair(setting), languages)
    record = datastore_record.read_record(setting)
    datastore_record.require_same_text(setting, record, languages.fingerprints)
    arrays = datastore_folder.map_arrays(setting, record)
    return TranslationMemory(
        Sentences(arrays["source_ids"], arrays["source_starts"]),
        Sentences(arrays["target_ids"], arrays["target_starts"]),
        Index(arrays["index_starts"], arrays["index_sentences"], arrays["index_scores"]),
        record["left_out"],
        arrays.get(datastore_folder.KEYS),
        record.get("weights"),
    )


def arrays_of(memory: TranslationMemory) -> dict[str, np.ndarray]:
    """Returns the arrays of a memory by the names of their files, as `load` reads them."""
    parts = *memory.sources, *memory.targets, *memory.source_index
    return dict(zip(datastore_folder.ARRAYS, parts))

"""Translation by a model and a translation memory: kNN-MT with a datastore a sentence.

Dai et al. 2023 (arXiv:2302.12188). For each sentence the pairs with the most similar sources are
retrieved. The model decodes them by force; its readouts are the keys of the sentence's datastore,
their words the values, `</s>` included. `memory.nearest_neighbors` and, with a trained network,
`memory.adaptive_neighbors` have what follows at each step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfmann.config import HParams
from tfmann.data import (
    datastore_folder,
    meta_network_file,
    translation_memory,
)
from tfmann.data.batching import chunks
from tfmann.data.text_encoder import LanguagePair
from tfmann.data.translation_memory import TranslationMemory
from tfmann.data.vocab import EOS_ID, UNK_ID
from tfmann.decoding.forced_readouts import ForcedReadouts, weights_digest
from tfmann.decoding.translation import SourceLine
from tfmann.decoding.translator import Translator
from tfmann.errors import UserError
from tfmann.memory import adaptive_neighbors, nearest_neighbors
from tfmann.memory.word_mixture import NO_WORD, DocumentAndProposer
from tfmann.models.seq2seq import Seq2Seq
from tfmann.utils import memory_limits


class Neighbors(NamedTuple):
    """The nearest entries at the T positions of a translation, `</s>` included."""

    readouts: np.ndarray  # [T, R]
    distances: np.ndarray  # [T, k], from the least
    words: np.ndarray  # int32 [T, k], NO_WORD where there are fewer entries


class MemoryTranslator(Translator):
    """A `Translator` with a translation memory, which all hypotheses of a sentence share.

    Attributes:
      memory: its pairs.
    """

    memory: TranslationMemory
    _network: adaptive_neighbors.MetaNetwork | None  # of adaptive kNN-MT

    def __init__(
        self,
        model: Seq2Seq,
        languages: LanguagePair,
        hparams: HParams,
        lexicon: Mapping[str, str] | None = None,
        previous: Translator | None = None,
    ):
        """Reads the memory, or takes that of `previous`; other arguments as of `Translator`.

        `previous` is a translator of the same model, whose memory is taken if the settings name
        the same: no search needs one for itself.

        Raises:
          UsageError: the setting `translation_memory` names neither two files nor a folder.
          UserError: they cannot be used with this model.
        """
        super().__init__(model, languages, hparams, lexicon)
        setting = str(hparams.translation_memory)
        if (
            isinstance(previous, MemoryTranslator)
            and previous.hparams.translation_memory == hparams.translation_memory
        ):
            self.memory = previous.memory
        else:
            self.memory = translation_memory.load(setting, languages)
            _require_weights(setting, self.memory, model)
        self._network = _meta_network(hparams, model)
        self._forced = ForcedReadouts(model, hparams.infer_batch_size, hparams.append_source_eos)
        if isinstance(previous, MemoryTranslator) and previous._forced.is_like(self._forced):
            self._forced = previous._forced  # which may be compiled

    def least_distances(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Computes the squared distances d_1 from the positions of given pairs to the memory.

        Returns:
          `[all positions]`, in order, infinite where a sentence has no entry.
        """
        distances = [
            np.where(found.words[:, 0] == NO_WORD, np.inf, found.distances[:, 0])
            for found in self.neighbors(pairs, 1)
        ]
        return np.concatenate(distances) if distances else np.zeros([0])

    def neighbors(self, pairs: Sequence[tuple[str, str]], count: int) -> Iterator[Neighbors]:
        """Finds the `count` nearest entries at every position of given pairs, pair by pair."""
        encode = self.languages.target.encode
        ids = [(self.text.source_ids(line), encode(translation)) for line, translation in pairs]
        for batch in chunks(ids, self.hparams.infer_batch_size):
            most = self.hparams.translation_memory_pairs
            entries = self._datastores([self.memory.retrieve(x, most) for x, _ in batch])
            keys, words = nearest_neighbors.fill_up(*entries, count)
            for row, queries in enumerate(self._forced.of_pairs(batch)):
                datastore = keys[row : row + 1], words[row : row + 1]
                found = nearest_neighbors.nearest(queries[None], *datastore, count)
                yield Neighbors(queries, *(part[0].numpy() for part in found))

    def _document_inputs(self, lines: Sequence[SourceLine]) -> DocumentAndProposer:
        """Returns the sentences before the lines, and the lines' datastores."""
        h = self.hparams
        retrieved = [self.memory.retrieve(line.ids, h.translation_memory_pairs) for line in lines]
        keys, words = self._datastores(retrieved)
        tau = h.translation_memory_tau
        source: Any
        if self._network:
            source = adaptive_neighbors.source(keys, words, tau, self._network)
        else:
            source = nearest_neighbors.source(
                keys, words, h.translation_memory_neighbors, tau, h.translation_memory_lambda
            )
        return DocumentAndProposer(super()._document_inputs(lines), source)

    def _entry_origins(self, line: SourceLine) -> list[str]:
        """Returns the pair and the position of each entry of the line's datastore, from 1."""
        return [
            f"pair {number + 1}, word {position + 1}"
            for number in self.memory.retrieve(line.ids, self.hparams.translation_memory_pairs)
            for position in range(len(entry_words(self.memory, number)))
        ]

    def _document_signature(self) -> DocumentAndProposer:
        method = adaptive_neighbors if self._network else nearest_neighbors
        neighbors = self.hparams.translation_memory_neighbors
        source = method.signature(neighbors, self.model.readout_width)
        return DocumentAndProposer(super()._document_signature(), source)

    def _datastores(self, retrieved: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
        """Returns the entries of the pairs that were retrieved for each of B sentences.

        Returns:
          keys `[B, M, R]` and words `[B, M]`, NO_WORD where there is none and where it is `<unk>`.

        Raises:
          UsageError: they do not fit into memory.
        """
        numbers = sorted({number for pairs in retrieved for number in pairs})
        readouts = dict(zip(numbers, self._readouts(numbers)))
        entries = {number: entry_words(self.memory, number) for number in numbers}
        most = max((sum(len(entries[n]) for n in pairs) for pairs in retrieved), default=0)
        self._require_room(len(retrieved), most)
        keys = np.zeros([len(retrieved), most, self.model.readout_width], np.float32)
        words = np.full([len(retrieved), most], NO_WORD, np.int32)
        for row, pairs in enumerate(retrieved):
            begin = 0
            for number in pairs:
                end = begin + len(entries[number])
                keys[row, begin:end], words[row, begin:end] = readouts[number], entries[number]
                begin = end
        return keys, words

    def _require_room(self, rows: int, entries: int) -> None:
        """Raises UsageError if the keys `[B, M, R]` of a batch do not fit into memory."""
        memory_limits.require_without_gpu(
            rows * entries * self.model.readout_width,
            f"the datastores of {rows} sentences with up to {entries} entries each",
            "give a smaller infer_batch_size or translation_memory_pairs",
        )

    def _readouts(self, numbers: Sequence[int]) -> list[np.ndarray]:
        """Returns the keys `[T, R]` of pairs, stored or computed."""
        stored = self.memory.keys
        if stored is None:
            return self._forced.of_pairs([self.memory.pair(number) for number in numbers])
        return [stored[slice(*entry_range(self.memory, n))] for n in numbers]


def entry_words(memory: TranslationMemory, number: int) -> np.ndarray:
    """Returns the words `[T]` of a pair's entries: NO_WORD for `<unk>`, which no entry proposes."""
    words = np.append(memory.targets.sentence(number), EOS_ID)
    return np.where(words == UNK_ID, NO_WORD, words)


def entry_range(memory: TranslationMemory, number: int) -> tuple[int, int]:
    """Returns the rows of a pair among the entries of all pairs: one for each word and `</s>`."""
    begin, end = memory.targets.starts[number : number + 2]
    return int(begin) + number, int(end) + number + 1


def write_datastore(
    folder: str,
    memory: TranslationMemory,
    origin: Mapping[str, Any],
    model: Seq2Seq,
    batch: int,
    count: Callable[[], object] = lambda: None,
) -> None:
    """Writes a memory and the keys of all its pairs into a folder of `new_folder`.

    Keys are float16, half the size, and distances between them are computed in float32.

    Args:
      folder: where.
      memory: the pairs.
      origin: what the record has (`datastore_folder.save`), without `weights`.
      model: decodes the pairs.
      batch: pairs at a time.
      count: is called after each pair.

    Raises:
      UserError: a readout is too large for float16.
    """
    forced = ForcedReadouts(model, batch, model.hparams.append_source_eos)
    size = memory.sources.size
    total = entry_range(memory, size - 1)[1]
    name = datastore_folder.KEYS
    keys = datastore_folder.new_array(folder, name, "float16", (total, model.readout_width))
    for first in range(0, size, 64 * batch):
        numbers = range(first, min(first + 64 * batch, size))
        for number, readouts in zip(numbers, forced.of_pairs([memory.pair(n) for n in numbers])):
            if np.abs(readouts).max(initial=0.0) > np.finfo(np.float16).max:
                raise UserError(
                    f"pair {number + 1} of those without an empty side: a readout is too large for "
                    "float16, in which keys are stored: make the datastore without --keys"
                )
            keys[slice(*entry_range(memory, number))] = readouts
            count()
    keys.flush()
    arrays = {**translation_memory.arrays_of(memory), name: keys}
    datastore_folder.save(folder, arrays, {**origin, "weights": weights_digest(model)})


def _require_weights(setting: str, memory: TranslationMemory, model: Seq2Seq) -> None:
    """Raises UserError if the keys of a datastore are of other weights than those of the model."""
    if memory.weights is not None and memory.weights != weights_digest(model):
        raise UserError(
            f"the keys of the datastore {setting} are readouts of other weights than those of this "
            "model: make one for it with `tfmann datastore --keys`, or one without --keys"
        )


def _meta_network(hparams: HParams, model: Seq2Seq) -> adaptive_neighbors.MetaNetwork | None:
    """Reads the network of adaptive kNN-MT, if the settings name one.

    Raises:
      UserError: it is of other settings or weights, or damaged.
    """
    if not hparams.translation_memory_adaptive:
        return None
    record = meta_network_file.read(hparams)
    path = str(hparams.translation_memory_adaptive)
    meta_network_file.require_weights(path, record, weights_digest(model))
    arrays = {name: np.array(rows, np.float32) for name, rows in record["network"].items()}
    return adaptive_neighbors.MetaNetwork(**arrays)

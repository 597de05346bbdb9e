"""Translation by a model and its memory of word translations (`memory.lexical_memory`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfmann.config import HParams
from tfmann.data import lexical_memory_file
from tfmann.data.lexical_memory_file import WEIGHTS, LexicalMemory
from tfmann.data.text_encoder import LanguagePair
from tfmann.data.translation_table import TranslationTable
from tfmann.decoding.forced_readouts import weights_digest
from tfmann.decoding.translation import SourceLine
from tfmann.decoding.translator import Translator
from tfmann.memory import lexical_memory
from tfmann.memory.lexical_memory import LexicalEntries, LexicalWeights
from tfmann.memory.word_mixture import DocumentAndProposer
from tfmann.models.seq2seq import Prepared, Seq2Seq


class LexicalModel:
    """A model whose prepared sources have the memories of their sentences.

    Attributes:
      plain: the model without them, whose other attributes are this one's.
    """

    def __init__(self, plain: Seq2Seq, weights: LexicalWeights, mixture_weight: float):
        """Takes the weights of the attention and lambda."""
        self.plain, self._weights, self._mixture_weight = plain, weights, mixture_weight

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)

    def prepare(
        self, source: tf.Tensor, length: tf.Tensor, *, document: Any = (), **others: Any
    ) -> Prepared:
        """Does as `Seq2Seq.prepare`, with memories if `document` has `LexicalEntries`."""
        if not isinstance(document, DocumentAndProposer):
            return self.plain.prepare(source, length, document=document, **others)
        prepared = self.plain.prepare(source, length, document=document.document, **others)
        encoded = prepared.encoded
        proposer = lexical_memory.prepare(
            document.proposer,
            self._weights,
            encoded.annotations,
            self.plain.target_embedding,
            self._mixture_weight,
        )
        return prepared._replace(encoded=encoded._replace(word_proposer=proposer))


class LexicalTranslator(Translator):
    """A `Translator` with a memory of word translations.

    Attributes:
      memory: its table and weights.
    """

    memory: LexicalMemory

    def __init__(
        self,
        model: Seq2Seq,
        languages: LanguagePair,
        hparams: HParams,
        lexicon: Mapping[str, str] | None = None,
        previous: Translator | None = None,
    ):
        """Reads the memory, or takes that of `previous`; other arguments as of `Translator`.

        Raises:
          UserError: it cannot be read, or is another model's.
        """
        name = str(hparams.lexical_memory)
        if (
            isinstance(previous, LexicalTranslator)
            and previous.hparams.lexical_memory == hparams.lexical_memory
        ):
            self.memory = previous.memory
        else:
            self.memory = lexical_memory_file.read(name)
            text = languages.fingerprints
            digest = weights_digest(model)
            lexical_memory_file.require_same_model(name, self.memory.record, text, digest)
        weights = LexicalWeights(*(tf.constant(self.memory.weights[key]) for key in WEIGHTS))
        with_memory: Any = LexicalModel(model, weights, hparams.lexical_memory_lambda)
        super().__init__(with_memory, languages, hparams, lexicon)

    def _document_inputs(self, lines: Sequence[SourceLine]) -> DocumentAndProposer:
        """Returns the sentences before the lines, and the words in the lines' memories."""
        found = entries(
            self.memory.table, [line.ids for line in lines], self.hparams.append_source_eos
        )
        return DocumentAndProposer(super()._document_inputs(lines), found)

    def _entry_origins(self, line: SourceLine) -> list[str]:
        """Returns the source words that each word of the line's memory may translate."""
        tokens = self.text.source_tokens(line.ids)
        _, shares = self.memory.table.entries(line.ids, lexical_memory.MOST_SLOTS)
        return [
            " ".join(dict.fromkeys(tokens[i] for i in np.flatnonzero(of_word)))
            for of_word in shares
        ]

    def _document_signature(self) -> DocumentAndProposer:
        signature = lexical_memory.entries_signature()
        return DocumentAndProposer(super()._document_signature(), signature)


def entries(
    table: TranslationTable, sentences: Sequence[Sequence[int]], append_source_eos: bool
) -> LexicalEntries:
    """Returns the memories of sentences, given as ids without `</s>`."""
    found = [table.entries(ids, lexical_memory.MOST_SLOTS) for ids in sentences]
    words, shares = zip(*found)
    positions = max(1, max(map(len, sentences)) + append_source_eos)  # as in `pad_sources`
    return lexical_memory.pack([*words], [*shares], positions)

"""Text as ids and back: the segmenter and the vocabulary of a language together."""

from __future__ import annotations

from typing import NamedTuple

from tfmann.data.subword import Segmenter
from tfmann.data.vocab import EOS_ID, UNK_ID, Vocabulary


class TextEncoder(NamedTuple):
    """Encodes and decodes the lines of one language."""

    vocabulary: Vocabulary
    segmenter: Segmenter

    def encode(self, line: str) -> list[int]:
        """Returns the ids of a line without `</s>`; special symbols in the text become `<unk>`."""
        ids = self.vocabulary.encode(self.segmenter.segment(line))
        return [i if i > EOS_ID else UNK_ID for i in ids]

    def decode(self, ids: list[int]) -> str:
        """Returns the text of the ids before the first `</s>`."""
        if EOS_ID in ids:
            ids = ids[: ids.index(EOS_ID)]
        return self.segmenter.join(self.vocabulary.decode(ids))


class LanguagePair(NamedTuple):
    """The encoders of a model's source and target language."""

    source: TextEncoder
    target: TextEncoder

    @property
    def fingerprints(self) -> list[str]:
        """SHA-256 of segmenter and vocabulary, source before target: what ids depend on."""
        return [part.fingerprint for side in self for part in (side.segmenter, side.vocabulary)]

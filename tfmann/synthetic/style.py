"""The kinds of synthetic corpus: what its sentences and documents are like."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from tfmann.errors import UserError


@dataclass(frozen=True)
class Style:
    """The features in which a corpus differs from the plain one.

    Attributes:
      document_tense: only the first sentence of a document marks the tense, so that the others
        cannot be translated alone.
      document_topic: every sentence has an ambiguous noun, whose translation follows from the
        topic. The first of a document has another word that shows the topic; later ones may have
        none, and cannot be translated alone then, unless two such nouns share only one topic.
      long_sentences: sentences of several clauses, with more modifiers, in which the words before
        the verb stand in free order and later clauses repeat phrases of earlier ones. Those of dev
        and test are longer than those of train: there an RNNSearch that translates what it was
        trained on without fault leaves out clauses and says others twice.
      unseen_lengths: with long sentences: longer ones than those of train.

    Raises:
      UserError: long sentences are to depend on their document.
    """

    document_tense: bool = False
    document_topic: bool = False
    long_sentences: bool = False
    unseen_lengths: bool = False

    def __post_init__(self) -> None:
        if self.long_sentences and (self.document_tense or self.document_topic):
            raise UserError(
                "synthetic corpus: long_sentences does not go with document_tense or "
                "document_topic; a long sentence can be translated alone"
            )

    def for_evaluation(self) -> Style:
        """Returns the style of dev and test."""
        return dataclasses.replace(self, unseen_lengths=self.long_sentences)

    @property
    def sentence_lengths(self) -> tuple[int, int]:
        """The fewest and the most words of a sentence on either side, with the full stop."""
        if not self.long_sentences:
            return (4, 18)
        return (12, 80) if self.unseen_lengths else (12, 44)

    @property
    def clauses(self) -> tuple[int, ...]:
        """Weights of 1, 2, ... clauses of a sentence."""
        if not self.long_sentences:
            return (1,)
        return (0, 0, 20, 50, 30) if self.unseen_lengths else (10, 40, 35, 15)

    @property
    def modifiers(self) -> tuple[int, ...]:
        """Weights of 0, 1, 2, ... adjectives of a noun."""
        return (35, 35, 20, 10) if self.long_sentences else (60, 32, 8)

    def flags(self) -> str:
        """Returns the flags of the command that writes such a corpus."""
        chosen = {
            "document_tense": self.document_tense,
            "document_topic": self.document_topic,
            "long_sentences": self.long_sentences,
        }
        return "".join(f" --{name}" for name, value in chosen.items() if value)


PLAIN = Style()

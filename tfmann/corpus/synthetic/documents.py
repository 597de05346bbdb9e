"""Documents of synthetic sentence pairs: the stream that every split of the corpus is cut from."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Callable

from tfmann.corpus.synthetic import grammar, lexicon
from tfmann.corpus.synthetic.draws import Draws
from tfmann.corpus.synthetic.nominals import Setting, setting
from tfmann.corpus.synthetic.phrases import Phrase
from tfmann.errors import UserError

SENTENCE_LENGTHS = (4, 18)  # in words, the full stop counted, on either side
DOCUMENT_LENGTHS = (3, 4, 5, 6, 7, 8)
# After so many refusals in a row the fault is in what is asked for, not in the luck of the draw.
_SENTENCE_TRIES = 100
_DOCUMENT_TRIES = 100


@dataclass(frozen=True)
class Example:
    """A sentence pair with its gold word alignment, its document and the tense it is told in."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: tuple[tuple[int, int], ...]  # (source index, target index), sorted, from 0
    document: int
    tense: str  # one of tables.TENSES


def generate(num_examples: int, seed: int, document_tense: bool = False) -> list[Example]:
    """The first sentence pairs of an endless text, in whole documents cut to the size.

    With ``document_tense`` only the first sentence of a document says when it happens; the same
    seed gives the same target text and the same source text without its tense particles.
    """
    return list(itertools.islice(examples(Draws(seed, "train"), document_tense), num_examples))


def examples(
    draws: Draws,
    document_tense: bool,
    accept: Callable[[Phrase], bool] | None = None,
) -> Iterator[Example]:
    """Sentence pairs without end, document by document, of those that ``accept`` lets pass.

    Raises:
        UserError: no document can be found whose sentences are all accepted.
    """
    for document in itertools.count():
        scene, sentences = _document(draws, document_tense, accept or (lambda sentence: True))
        for sentence in sentences:
            yield Example(
                tuple(word.text for word in sentence.source),
                tuple(image.text for image in sentence.target),
                sentence.alignment(),
                document,
                scene.tense,
            )


def _document(
    draws: Draws, document_tense: bool, accept: Callable[[Phrase], bool]
) -> tuple[Setting, list[Phrase]]:
    """Draws a document; one that gets stuck (a tense never accepted, say) is drawn anew."""
    for _ in range(_DOCUMENT_TRIES):
        scene, sentences = setting(draws), []
        for position in range(draws.one_of(DOCUMENT_LENGTHS)):
            for _ in range(_SENTENCE_TRIES):
                sentence = grammar.sentence(draws, scene, position == 0, not document_tense)
                if _is_well_formed(sentence, document_tense) and accept(sentence):
                    sentences.append(sentence)
                    break
            else:
                break
        else:
            return scene, sentences
    raise UserError(
        "synthetic corpus: found no new document for dev or test that uses only words of the "
        "training set; ask for more training sentences (--train)"
    )


def _is_well_formed(sentence: Phrase, document_tense: bool) -> bool:
    """Whether its length is fit, nobody occurs twice in it, and its topic is clear.

    A sentence with an ambiguous noun needs another word that only its topic has.
    """
    shortest, longest = SENTENCE_LENGTHS
    # Measured with the tense particle, so that both kinds of corpus consist of the same sentences.
    length = len(sentence.source) + document_tense
    words = [word.text for word in sentence.source]
    people = [word for word in words if word in lexicon.PEOPLE]
    has_cue = not lexicon.CUES.keys().isdisjoint(words)
    return (
        length <= longest
        and shortest <= len(sentence.target) <= longest
        and len(set(people)) == len(people)
        and (has_cue or lexicon.AMBIGUOUS.keys().isdisjoint(words))
    )

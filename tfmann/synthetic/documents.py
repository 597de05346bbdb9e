"""Documents of synthetic sentence pairs: the stream from which every split is taken."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Callable

from tfmann.errors import UserError
from tfmann.synthetic import grammar, lexicon
from tfmann.synthetic.draws import Draws
from tfmann.synthetic.nominals import Setting, setting
from tfmann.synthetic.phrases import Phrase
from tfmann.synthetic.style import PLAIN, Style

DOCUMENT_LENGTHS = (3, 4, 5, 6, 7, 8)
# So many refusals in a row mean that the conditions cannot be met, not bad luck.
_SENTENCE_TRIES = 100
_DOCUMENT_TRIES = 100


@dataclass(frozen=True)
class Example:
    """A sentence pair with its gold word alignment, its document and its tense."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: tuple[tuple[int, int], ...]  # (source index, target index), sorted, from 0
    document: int
    tense: str  # one of tables.TENSES


def generate(num_examples: int, seed: int, style: Style = PLAIN) -> list[Example]:
    """Returns the first sentence pairs of an endless stream of documents.

    With ``document_tense`` the same seed gives the same target text and the same source text
    without its tense particles.
    """
    return list(itertools.islice(examples(Draws(seed, "train"), style), num_examples))


def examples(
    draws: Draws,
    style: Style,
    accept: Callable[[Phrase], bool] | None = None,
) -> Iterator[Example]:
    """Yields sentence pairs without end, document by document; all of them pass ``accept``.

    Raises:
        UserError: no document is found whose sentences are all accepted.
    """
    for document in itertools.count():
        scene, sentences = _document(draws, style, accept or (lambda sentence: True))
        for sentence in sentences:
            yield Example(
                tuple(word.text for word in sentence.source),
                tuple(image.text for image in sentence.target),
                sentence.alignment(),
                document,
                scene.tense,
            )


def _document(
    draws: Draws, style: Style, accept: Callable[[Phrase], bool]
) -> tuple[Setting, list[Phrase]]:
    """Draws a document; starts again if a sentence is never accepted, e.g. for its tense."""
    for _ in range(_DOCUMENT_TRIES):
        scene, sentences = setting(draws, style), []
        for position in range(draws.one_of(DOCUMENT_LENGTHS)):
            for _ in range(_SENTENCE_TRIES):
                sentence = grammar.sentence(draws, scene, position == 0)
                if _is_well_formed(sentence, style, position == 0) and accept(sentence):
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


def _is_well_formed(sentence: Phrase, style: Style, first: bool) -> bool:
    """Returns whether a sentence has an allowed length, people as it should, and a clear topic.

    Only in long sentences may a person occur twice.
    """
    shortest, longest = style.sentence_lengths
    # Measured with the tense particle, so that both kinds of corpus consist of the same sentences.
    length = len(sentence.source) + style.document_tense
    words = [word.text for word in sentence.source]
    people = [word for word in words if word in lexicon.PEOPLE]
    return (
        length <= longest
        and shortest <= len(sentence.target) <= longest
        and (style.long_sentences or len(set(people)) == len(people))
        and _has_clear_topic(words, style, first)
    )


def _has_clear_topic(words: list[str], style: Style, first: bool) -> bool:
    """Returns whether the topic can be known where it has to be.

    A sentence with an ambiguous noun needs another word that only its topic has. With
    `document_topic` every sentence has an ambiguous noun, and only the first needs such a word.
    """
    has_cue = not lexicon.CUES.keys().isdisjoint(words)
    is_ambiguous = not lexicon.AMBIGUOUS.keys().isdisjoint(words)
    if not style.document_topic:
        return has_cue or not is_ambiguous
    return is_ambiguous and (has_cue or not first)

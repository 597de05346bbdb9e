"""The lexicon of `shortlist`: which target tokens translate which source tokens of a model.

It is a lexicon file (`lexicon`) with several lines for a source token, whose weights are t(t|s) of
IBM Model 1. The source `<s>`, which no text contains and every sentence begins with, has the most
frequent target tokens, with their shares of the text. In a file without such lines the first tokens
of the target vocabulary count as the most frequent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Callable, NamedTuple

import numpy as np

from tfmann.data import ibm_model1, lexicon
from tfmann.data.lexicon import Entry
from tfmann.data.text_encoder import LanguagePair
from tfmann.data.vocab import EOS_ID, SOS, SPECIALS, UNK_ID
from tfmann.errors import UserError
from tfmann.utils.files import PathLike


class TranslationLists(NamedTuple):
    """The target ids of each source id, and those that every sentence has."""

    always: np.ndarray  # [A], `<unk>`, `<s>` and `</s>` among them
    starts: np.ndarray  # [source V + 1], where the list of each source id begins
    targets: np.ndarray  # [all lists]

    def of_source(self, source: int) -> np.ndarray:
        """Returns the list of a source id."""
        return self.targets[self.starts[source] : self.starts[source + 1]]

    def of_sentence(self, source: Iterable[int], given: Iterable[int] = ()) -> np.ndarray:
        """Returns the distinct ids, ascending, that translations of a sentence may have.

        Args:
          source: the sentence's ids.
          given: further ids that a translation must have.
        """
        lists = [self.of_source(word) for word in set(source)]
        return np.unique(np.concatenate([self.always, np.array([*given], np.int32), *lists]))


def read(name: PathLike, languages: LanguagePair, first: int, best: int) -> TranslationLists:
    """Reads a lexicon for the vocabularies of a model.

    Args:
      name: the file.
      languages: its tokens are those of these vocabularies; lines with others are skipped.
      first: most frequent target tokens that every sentence has.
      best: most probable translations of a source token.

    Raises:
      UserError: the file cannot be read, a line has another form, or no line is about tokens of
        the two vocabularies.
    """
    source_ids, target_ids = (
        {token: i for i, token in enumerate(side.vocabulary.tokens)} for side in languages
    )
    greatest: dict[tuple[int, int], float] = {}  # of the lines of a pair
    for entry in lexicon.iter_entries(name):
        if entry.source in source_ids and target_ids.get(entry.target, EOS_ID) > EOS_ID:
            pair = source_ids[entry.source], target_ids[entry.target]
            greatest[pair] = max(entry.weight, greatest.get(pair, 0.0))
    rows = [(*pair, weight) for pair, weight in greatest.items()]
    table = np.array(rows, np.float64).reshape(-1, 3)  # ids are exact below 2**53
    sources, targets, weights = table[:, 0].astype(int), table[:, 1].astype(np.int32), table[:, 2]
    order = np.lexsort((-weights, sources))  # stable: of equal weights the first line
    sources, targets = sources[order], targets[order]
    starts = np.searchsorted(sources, np.arange(len(source_ids) + 1))
    begin, end = starts[source_ids[SOS] : source_ids[SOS] + 2]
    if len(sources) == end - begin:
        raise UserError(
            f"{name}: no line has a source and a target token of this model's vocabularies; "
            "expected a lexicon that `tfmann shortlist` learned for it, with lines such as "
            f"{_example(languages)!r}"
        )
    frequent = targets[begin:end]
    if not len(frequent):
        frequent = np.arange(len(SPECIALS), len(target_ids), dtype=np.int32)
    is_best = np.arange(len(sources)) - starts[sources] < best
    is_best[begin:end] = False
    return TranslationLists(
        np.concatenate([np.arange(len(SPECIALS), dtype=np.int32), frequent[:first]]),
        np.concatenate([[0], np.cumsum(is_best)])[starts],
        targets[is_best],
    )


def _example(languages: LanguagePair) -> str:
    """Returns a line of a lexicon in the first tokens of the vocabularies."""
    words = [side.vocabulary.tokens[len(SPECIALS) :] for side in languages]
    return " ".join([*(tokens[0] if tokens else "word" for tokens in words), "0.5"])


def learn(
    pairs: Iterable[tuple[Sequence[int], Sequence[int]]],
    languages: LanguagePair,
    first: int,
    best: int,
    log: Callable[[str], None] = lambda message: None,
) -> list[Entry]:
    """Learns the lexicon of a model by IBM Model 1.

    Args:
      pairs: ids of sentence pairs; one with a side that is empty or above `MAX_WORDS` is skipped.
      languages: their vocabularies.
      first: most frequent target tokens to yield.
      best: most probable translations of each source token to yield.
      log: receives the number of skipped pairs.

    Returns:
      the entries of `<s>`, then of the source tokens by id, each by falling weight.

    Raises:
      UserError: no pair is left.
    """
    source_tokens, target_tokens = (side.vocabulary.tokens for side in languages)
    empty_word = len(source_tokens)
    known = ((source, [word for word in target if word != UNK_ID]) for source, target in pairs)
    sources, targets = [], []
    unit = "tokens, unknown ones of the target not counted"
    for source, target in ibm_model1.usable_pairs(known, unit, log):
        sources.append(np.array([empty_word, *source], np.int32))
        targets.append(np.array(target, np.int32))
    return list(_entries(sources, targets, source_tokens, target_tokens, first, best))


def learn_words(pairs: Iterable[tuple[Sequence[str], Sequence[str]]], best: int) -> list[Entry]:
    """Learns the most probable translations of the words of a text; arguments as of `learn`.

    Raises:
      UserError: no pair is left.
    """
    source_ids: dict[str, int] = {}
    target_ids: dict[str, int] = {}
    sources, targets = [], []
    for source, target in ibm_model1.usable_pairs(pairs, "words", lambda message: None):
        sources.append(ibm_model1.encode(source, source_ids))
        targets.append(ibm_model1.encode(target, target_ids))
    empty_word = np.array([len(source_ids)], np.int32)
    sources = [np.concatenate([empty_word, ids]) for ids in sources]
    return list(_entries(sources, targets, [*source_ids], [*target_ids], 0, best))


def _entries(
    sources: Sequence[np.ndarray],
    targets: Sequence[np.ndarray],
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    first: int,
    best: int,
) -> Iterator[Entry]:
    """Yields the entries of `learn`."""
    frequency = np.bincount(np.concatenate(targets), minlength=len(target_tokens))
    for target in np.argsort(-frequency, kind="stable")[:first]:
        if frequency[target]:
            yield Entry(SOS, target_tokens[target], frequency[target] / frequency.sum())
    counts = ibm_model1.expected_counts(sources, targets)
    probability = counts.probability
    order = np.lexsort((-probability, counts.source))
    source, target, weight = (part[order] for part in (counts.source, counts.target, probability))
    begins = ibm_model1.run_starts(source)
    rank = np.arange(source.size) - np.repeat(begins, np.diff(begins, append=source.size))
    chosen = (rank < best) & (source < len(source_tokens))
    for s, t, w in zip(source[chosen].tolist(), target[chosen].tolist(), weight[chosen].tolist()):
        yield Entry(source_tokens[s], target_tokens[t], min(w, 1.0))

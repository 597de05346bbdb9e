"""Under- and over-translated source words, word by word.

Meng et al. (2018) had people count the source words that are under-translated (Table 3: 13.1 % of
a baseline's) and over-translated (2.7 %). Here they are counted from sure links between source and
reference, which the synthetic corpus and hand-aligned test sets have:

- A source word is judged if it has a sure link. Its head is the rarest reference word that it is
  linked to ("house" of "the house"). Words are counted in all references of the set; of equally
  rare words the longest is taken, then the first.
- As many identical words of reference and hypothesis as possible are paired: first those that the
  links of both sides trace to the same source word, then the longest common run of words, then the
  next ("greedy string tiling", Wise 1993), so that of several "the" the one before "house" is
  paired with the "the" before "house".
- Under-translated: the head is not paired. If links of source and hypothesis are given, a source
  word that is linked to a word that the reference lacks counts as reworded instead. Without such
  links every rewording counts as under-translated, so the share is an upper bound.
- Over-translated: the hypothesis has the head more often than the reference, and the superfluous
  word repeats the source word's: the reference word of this spelling that its links trace to the
  same source word, or else the one that is paired nearest to it.

Without gold links, `tfmann.evaluation.repetition` counts the n-grams that a translation repeats and
its reference does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tfmann.errors import UserError
from tfmann.evaluation.alignment import Link

_Pair = tuple[int, int]  # (reference position, hypothesis position)


class Judgement(NamedTuple):
    """Positions of a sentence's source words, in ascending order.

    Attributes:
      judged: words with a sure link.
      under: under-translated words among them.
      reworded: words translated by a word that the reference lacks; empty without links of source
        and hypothesis.
      over: over-translated words.
    """

    judged: list[int]
    under: list[int]
    reworded: list[int]
    over: list[int]


@dataclass(frozen=True)
class Adequacy:
    """Counts over a set; shares are of the judged source words, from 0 to 1."""

    source_words: int
    sentences: list[Judgement]

    @property
    def judged(self) -> int:
        """The number of judged source words."""
        return sum(len(sentence.judged) for sentence in self.sentences)

    @property
    def under(self) -> int:
        """The number of under-translated source words."""
        return sum(len(sentence.under) for sentence in self.sentences)

    @property
    def reworded(self) -> int:
        """The number of source words that are translated by words that the reference lacks."""
        return sum(len(sentence.reworded) for sentence in self.sentences)

    @property
    def over(self) -> int:
        """The number of over-translated source words."""
        return sum(len(sentence.over) for sentence in self.sentences)

    @property
    def under_share(self) -> float:
        """The share of under-translated source words."""
        return self.under / self.judged

    @property
    def reworded_share(self) -> float:
        """The share of source words that are translated by words that the reference lacks."""
        return self.reworded / self.judged

    @property
    def over_share(self) -> float:
        """The share of over-translated source words."""
        return self.over / self.judged


def adequacy(
    sources: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    hypotheses: Sequence[Sequence[str]],
    sure: Sequence[Iterable[Link]],
    links: Sequence[Iterable[Link]] | None = None,
    names: Sequence[str] = ("the sure links", "the links"),
) -> Adequacy:
    """Counts the under- and over-translated source words of a set of translations.

    Args:
      sources: the words of each source sentence.
      references: the words of its reference.
      hypotheses: the words of its translation.
      sure: the sure links of source and reference.
      links: links of source and hypothesis, from attention or an aligner, if there are any.
      names: what errors call `sure` and `links`, such as their files.

    Raises:
      UserError: the numbers of sentences differ, a link is outside its sentence, or no source
        word has a sure link.
    """
    parts = (sources, references, hypotheses, sure, links)
    sizes = [len(part) for part in parts if part is not None]
    if len(set(sizes)) > 1:
        raise UserError(
            "sources, references, translations and alignments must have a line for each sentence; "
            f"there are {', '.join(map(str, sizes))}"
        )
    frequency = Counter(word for reference in references for word in reference)
    judged = []
    for number, (source, reference, hypothesis) in enumerate(
        zip(sources, references, hypotheses), start=1
    ):
        reference_links = list(sure[number - 1])
        hypothesis_links = None if links is None else list(links[number - 1])
        _check_inside(reference_links, len(source), len(reference), f"{names[0]}, line {number}")
        _check_inside(
            hypothesis_links or (), len(source), len(hypothesis), f"{names[1]}, line {number}"
        )
        judged.append(judge(reference, hypothesis, reference_links, frequency, hypothesis_links))
    counts = Adequacy(sum(map(len, sources)), judged)
    if not counts.judged:
        raise UserError("nothing to judge: no source word has a sure link to a reference word")
    return counts


def judge(
    reference: Sequence[str],
    hypothesis: Sequence[str],
    sure: Collection[Link],
    frequency: Mapping[str, int],
    links: Collection[Link] | None = None,
) -> Judgement:
    """Judges the source words of a sentence by the rules of this module.

    Args:
      reference: its words.
      hypothesis: its words.
      sure: the sure links of source and reference.
      frequency: counts of words in all references, which determine heads.
      links: links of source and hypothesis, if there are any.
    """
    translations = _by_source(sure)  # source position -> its reference positions
    produced = _by_source(links or ())  # source position -> its hypothesis positions
    origins, traced = _by_target(sure), _by_target(links or ())
    paired = _pair(reference, hypothesis, origins, traced)
    paired_positions = set(paired.values())
    reference_words = set(reference)
    # source position -> the reference positions of its head
    heads = {i: _head(reference, js, frequency) for i, js in translations.items()}

    under, reworded = [], []
    for i in sorted(heads):
        if any(j in paired for j in heads[i]):
            continue
        new = any(hypothesis[k] not in reference_words for k in produced.get(i, ()))
        (reworded if new else under).append(i)

    over = set()
    for k, word in enumerate(hypothesis):
        if k in paired_positions or word not in reference_words:
            continue
        j = _repeated(k, word, reference, paired, origins, traced)
        over.update(i for i in origins.get(j, ()) if j in heads[i])
    return Judgement(sorted(heads), under, reworded, sorted(over))


def _by_source(links: Iterable[Link]) -> dict[int, list[int]]:
    targets: dict[int, list[int]] = {}
    for i, j in sorted(set(links)):
        targets.setdefault(i, []).append(j)
    return targets


def _by_target(links: Iterable[Link]) -> dict[int, set[int]]:
    sources: dict[int, set[int]] = {}
    for i, j in links:
        sources.setdefault(j, set()).add(i)
    return sources


def _head(
    reference: Sequence[str], positions: Sequence[int], frequency: Mapping[str, int]
) -> list[int]:
    """Returns those of a source word's reference positions that have the rarest word."""
    rarest = min(positions, key=lambda j: (frequency[reference[j]], -len(reference[j]), j))
    return [j for j in positions if reference[j] == reference[rarest]]


def _pair(
    reference: Sequence[str],
    hypothesis: Sequence[str],
    origins: Mapping[int, set[int]],
    traced: Mapping[int, set[int]],
) -> dict[int, int]:
    """Pairs as many identical words as possible: reference position -> hypothesis position."""
    identical = [
        (j, k)
        for j, word in enumerate(reference)
        for k, other in enumerate(hypothesis)
        if word == other
    ]
    same_source = [(j, k) for j, k in identical if origins.get(j, set()) & traced.get(k, set())]
    paired: dict[int, int] = {}
    for candidates in (same_source, identical):
        paired_positions = set(paired.values())
        free = [(j, k) for j, k in candidates if j not in paired and k not in paired_positions]
        while free:
            run = _longest_run(free, len(reference), len(hypothesis))
            paired.update(run)
            paired_positions.update(k for _, k in run)
            free = [(j, k) for j, k in free if j not in paired and k not in paired_positions]
    return paired


def _longest_run(free: Sequence[_Pair], reference: int, hypothesis: int) -> list[_Pair]:
    """Returns the longest diagonal run of pairs; of several, the one closest to the diagonal."""
    lengths: dict[_Pair, int] = {}
    for j, k in free:
        lengths[j, k] = lengths.get((j - 1, k - 1), 0) + 1

    def rank(pair: _Pair) -> tuple[int, int, _Pair]:
        j, k = pair
        return -lengths[pair], abs(j * hypothesis - k * reference), pair

    j, k = min(free, key=rank)
    return [(j - step, k - step) for step in range(lengths[j, k])]


def _repeated(
    k: int,
    word: str,
    reference: Sequence[str],
    paired: Mapping[int, int],
    origins: Mapping[int, set[int]],
    traced: Mapping[int, set[int]],
) -> int:
    """Returns the reference position that a superfluous hypothesis word repeats.

    All positions of this word are paired, or it would not be superfluous.
    """
    positions = [j for j, other in enumerate(reference) if other == word]
    same_source = [j for j in positions if origins.get(j, set()) & traced.get(k, set())]
    return min(same_source or positions, key=lambda j: (abs(paired[j] - k), j))


def _check_inside(links: Iterable[Link], source: int, target: int, name: str) -> None:
    for i, j in links:
        if i >= source or j >= target:
            raise UserError(
                f"{name}: {i}-{j} is a link outside the sentence: the source has {source} words, "
                f"the other side {target}; are these the sentences of the links?"
            )

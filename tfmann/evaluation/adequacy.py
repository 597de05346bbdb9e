"""What a translation leaves out and what it says too often, source word by source word.

Meng et al. (2018) had people count the source words that are under-translated (Table 3: 13.1 % of
a baseline's) and over-translated (2.7 %). Here the count is made from sure links of the source
with a reference, as the synthetic corpus and hand-aligned test sets have them:

- A source word is judged if it has a sure link. Of the reference words it is linked to, the
  rarest stands for its translation, its head ("house" of "the house"); words are counted in all
  references of the set, and of equally rare ones it is the longest, then the first.
- Words of the reference and the hypothesis that are spelled alike are paired, as many as there
  are: first those that the links of both sides trace to the same source word, then the longest
  common run of words, then the next ("greedy string tiling", Wise 1993), so that of several
  "the" it is the one before "house" that is paired with the "the" before "house".
- Under-translated: the head is not paired. Where links of source and hypothesis are given, a
  word that the reference does not have may stand for it: a source word that is linked with such a
  word counts as reworded instead. Without them every rewording counts as under-translated, so
  that the share is an upper bound.
- Over-translated: the hypothesis has its head more often than the reference, and of the
  reference's words of this spelling the superfluous one goes back to the source word's: to the one
  that its links trace to the same source word, else to the one paired nearest to it.

Where nothing is aligned by hand, `tfmann.evaluation.repetition` counts what a translation repeats
and its reference does not.
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
    """Positions of a sentence's source words, each in ascending order.

    Attributes:
      judged: those with a sure link.
      under: the under-translated ones of them.
      reworded: those whose translation is a word that the reference does not have; none where
        the links of source and hypothesis are not given.
      over: the over-translated ones.
    """

    judged: list[int]
    under: list[int]
    reworded: list[int]
    over: list[int]


@dataclass(frozen=True)
class Adequacy:
    """The counts over a set; the shares are of the judged source words, from 0 to 1."""

    source_words: int
    judged: int
    under: int
    reworded: int
    over: int

    @property
    def under_share(self) -> float:
        """Share of under-translated source words."""
        return self.under / self.judged

    @property
    def reworded_share(self) -> float:
        """Share of source words that are translated by words that the reference does not have."""
        return self.reworded / self.judged

    @property
    def over_share(self) -> float:
        """Share of over-translated source words."""
        return self.over / self.judged


def adequacy(
    sources: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    hypotheses: Sequence[Sequence[str]],
    sure: Sequence[Iterable[Link]],
    links: Sequence[Iterable[Link]] | None = None,
) -> Adequacy:
    """Counts the source words that a set of translations leaves out or says too often.

    Args:
      sources: the words of each source sentence.
      references: the words of its reference.
      hypotheses: the words of its translation.
      sure: the sure links of source and reference.
      links: links of source and hypothesis, of the attention or of an aligner, if there are any.

    Raises:
      UserError: the numbers of sentences differ, a link lies outside of its sentence, or no
        source word has a sure link.
    """
    parts = (sources, references, hypotheses, sure, links)
    sizes = [len(part) for part in parts if part is not None]
    if len(set(sizes)) > 1:
        raise UserError(
            "sources, references, translations and alignments must have a line for each sentence; "
            f"there are {', '.join(map(str, sizes))}"
        )
    frequency = Counter(word for reference in references for word in reference)
    judged = under = reworded = over = 0
    for number, (source, reference, hypothesis) in enumerate(
        zip(sources, references, hypotheses), start=1
    ):
        of_reference = list(sure[number - 1])
        of_hypothesis = None if links is None else list(links[number - 1])
        _check_inside(of_reference, len(source), len(reference), f"sentence {number}, reference")
        _check_inside(
            of_hypothesis or (), len(source), len(hypothesis), f"sentence {number}, translation"
        )
        found = judge(reference, hypothesis, of_reference, frequency, of_hypothesis)
        judged += len(found.judged)
        under += len(found.under)
        reworded += len(found.reworded)
        over += len(found.over)
    if not judged:
        raise UserError("nothing to judge: no source word has a sure link with a reference")
    return Adequacy(sum(map(len, sources)), judged, under, reworded, over)


def judge(
    reference: Sequence[str],
    hypothesis: Sequence[str],
    sure: Collection[Link],
    frequency: Mapping[str, int],
    links: Collection[Link] | None = None,
) -> Judgement:
    """Judges the source words of a sentence, as the module says.

    Args:
      reference: its words.
      hypothesis: its words.
      sure: the sure links of source and reference.
      frequency: how often a word occurs in all references; it decides on heads.
      links: links of source and hypothesis, if there are any.
    """
    translations = _by_source(sure)  # source position -> its reference positions
    produced = _by_source(links or ())  # source position -> its hypothesis positions
    origins, traced = _by_target(sure), _by_target(links or ())
    paired = _pair(reference, hypothesis, origins, traced)
    taken = set(paired.values())
    spelled = set(reference)
    # source position -> the reference positions of its head
    heads = {i: _head(reference, places, frequency) for i, places in translations.items()}

    under, reworded = [], []
    for i in sorted(heads):
        if any(j in paired for j in heads[i]):
            continue
        new = any(hypothesis[k] not in spelled for k in produced.get(i, ()))
        (reworded if new else under).append(i)

    over = set()
    for k, word in enumerate(hypothesis):
        if k in taken or word not in spelled:
            continue
        j = _repeated(k, word, reference, paired, origins, traced)
        over.update(i for i in origins.get(j, ()) if j in heads[i])
    return Judgement(sorted(heads), under, reworded, sorted(over))


def _by_source(links: Iterable[Link]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for i, j in sorted(set(links)):
        found.setdefault(i, []).append(j)
    return found


def _by_target(links: Iterable[Link]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for i, j in links:
        found.setdefault(j, set()).add(i)
    return found


def _head(
    reference: Sequence[str], places: Sequence[int], frequency: Mapping[str, int]
) -> list[int]:
    """Those of a source word's reference positions that hold the rarest word."""
    rarest = min(places, key=lambda j: (frequency[reference[j]], -len(reference[j]), j))
    return [j for j in places if reference[j] == reference[rarest]]


def _pair(
    reference: Sequence[str],
    hypothesis: Sequence[str],
    origins: Mapping[int, set[int]],
    traced: Mapping[int, set[int]],
) -> dict[int, int]:
    """Pairs words of the same spelling, as many as there are: reference -> hypothesis position."""
    alike = [
        (j, k)
        for j, word in enumerate(reference)
        for k, other in enumerate(hypothesis)
        if word == other
    ]
    akin = [(j, k) for j, k in alike if origins.get(j, set()) & traced.get(k, set())]
    paired: dict[int, int] = {}
    for candidates in (akin, alike):
        taken = set(paired.values())
        free = [(j, k) for j, k in candidates if j not in paired and k not in taken]
        while free:
            run = _longest_run(free, len(reference), len(hypothesis))
            paired.update(run)
            taken.update(k for _, k in run)
            free = [(j, k) for j, k in free if j not in paired and k not in taken]
    return paired


def _longest_run(free: Sequence[_Pair], reference: int, hypothesis: int) -> list[_Pair]:
    """The longest diagonal run of pairs in ascending order; of several, the one least moved."""
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
    """The reference position that a superfluous hypothesis word repeats.

    All positions of its spelling are paired, or it would not be superfluous.
    """
    places = [j for j, other in enumerate(reference) if other == word]
    own = [j for j in places if origins.get(j, set()) & traced.get(k, set())]
    return min(own or places, key=lambda j: (abs(paired[j] - k), j))


def _check_inside(links: Iterable[Link], source: int, target: int, what: str) -> None:
    for i, j in links:
        if i >= source or j >= target:
            raise UserError(
                f"{what}: {i}-{j} is a link of words that are not there: the source has {source} "
                f"words, the other side {target}; are these the sentences it was made for?"
            )

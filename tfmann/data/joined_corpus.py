"""Several encoded corpora as one, and the pairs that an epoch draws from each by its weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfmann.data.encoded_corpus import EncodedCorpus
from tfmann.data.text_files import NO_DOCUMENT


class JoinedCorpus:
    """The pairs of several corpora one after the other; their words stay in their own arrays.

    Attributes:
      begins: `[parts + 1]` the index of each corpus' first pair, and the number of all pairs.
      source_starts, target_starts, documents: as in `EncodedCorpus`, over all pairs. A document
        has an id of its own, and none continues in the next corpus.
    """

    def __init__(self, parts: Sequence[EncodedCorpus]):
        """Joins the parts in their order."""
        self._parts = list(parts)
        self.begins = np.cumsum([0, *map(len, parts)])
        self.source_starts = _join_starts([part.source_starts for part in parts])
        self.target_starts = _join_starts([part.target_starts for part in parts])
        self.documents = _join_documents([part.documents for part in parts])

    def __len__(self) -> int:
        """Returns the number of pairs."""
        return len(self.documents)

    def source(self, index: int) -> np.ndarray:
        """Returns the ids of a source line, without `</s>`."""
        part = self.part(index)
        return self._parts[part].source(index - self.begins[part])

    def target(self, index: int) -> np.ndarray:
        """Returns the ids of a target line, without `</s>`."""
        part = self.part(index)
        return self._parts[part].target(index - self.begins[part])

    def part(self, index: int | np.ndarray) -> np.ndarray:
        """Returns the corpora that pairs belong to."""
        return np.searchsorted(self.begins, index, side="right") - 1


class WeightedDraws:
    """The units that every epoch draws: pairs, or whole documents.

    The units of a corpus are drawn in an endless stream of permutations, so that each is drawn as
    often as any other of that corpus, once more or less. An epoch has as many pairs as all corpora
    together, n. From the stream of a corpus with a share p of the weights, epoch e takes the units
    that begin at pairs n p e to n p (e + 1). The draws depend on seed and epoch alone.
    """

    def __init__(self, parts: np.ndarray, lengths: np.ndarray, weights: Sequence[float], seed: int):
        """Prepares the draws from n units.

        Args:
          parts: `[n]` the corpus of each unit; every corpus has one or more.
          lengths: `[n]` pairs of each unit.
          weights: of each corpus, positive.
          seed: of the permutations.
        """
        self._lengths, self._seed = np.asarray(lengths, np.int64), seed
        self._units = [np.flatnonzero(parts == part) for part in range(len(weights))]
        self._rates = [self._lengths.sum() * weight / sum(weights) for weight in weights]

    def draw(self, epoch: int) -> np.ndarray:
        """Returns the numbers of the units of an epoch, those of the first corpus first."""
        return np.concatenate([self._draw(part, epoch) for part in range(len(self._units))])

    def _draw(self, part: int, epoch: int) -> np.ndarray:
        units, rate = self._units[part], float(self._rates[part])
        begin, end = int(rate * epoch), int(rate * (epoch + 1))
        total, drawn = int(self._lengths[units].sum()), [np.zeros([0], np.int64)]
        for number in range(begin // total, -(-end // total)):
            # the 1 keeps it apart from the order of the epoch `part`: final zeros do not count
            stream = np.random.Generator(np.random.PCG64([self._seed, part, number, 1]))
            order = units[stream.permutation(len(units))]
            starts = number * total + np.cumsum(self._lengths[order]) - self._lengths[order]
            drawn.append(order[(begin <= starts) & (starts < end)])
        return np.concatenate(drawn)


def _join_starts(starts: Sequence[np.ndarray]) -> np.ndarray:
    lengths = [np.diff(part) for part in starts]
    return np.concatenate([[0], np.cumsum(np.concatenate(lengths))])


def _join_documents(ids: Sequence[np.ndarray]) -> np.ndarray:
    """Renumbers the documents `[n]` of several corpora; `NO_DOCUMENT` stays."""
    joined, first = [], 0
    for part in ids:
        numbers = np.unique(part, return_inverse=True)[1].reshape(-1)
        joined.append(np.where(part == NO_DOCUMENT, NO_DOCUMENT, first + numbers))
        first += len(part)
    return np.concatenate(joined).astype(np.int64)

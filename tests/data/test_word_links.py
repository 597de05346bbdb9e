"""Links of words: against Model 1 by plain loops, and what rare words are linked with."""

import collections

import numpy as np
import pytest

from tfmann.data import word_links
from tfmann.errors import UserError

EMPTY = None


def probabilities(pairs, iterations=5):
    """t(t|s) of IBM Model 1, by loops over dictionaries."""
    table = collections.defaultdict(lambda: 1.0)
    for _ in range(iterations):
        counts = collections.defaultdict(float)
        for source, target in pairs:
            for t in target:
                total = sum(table[s, t] for s in [*source, EMPTY])
                for s in [*source, EMPTY]:
                    counts[s, t] += table[s, t] / total
        of_source = collections.defaultdict(float)
        for (s, _), value in counts.items():
            of_source[s] += value
        table = {key: value / of_source[key[0]] for key, value in counts.items()}
        table = collections.defaultdict(float, table)
    return table


def best(words, candidates, table):
    """For each word the position of its best candidate, None for the empty word."""
    result = []
    for word in words:
        values = [table[c, word] for c in [*candidates, EMPTY]]
        position = int(np.argmax(values))
        result.append(position if position < len(candidates) else None)
    return result


def links_by_loops(pairs):
    forward, backward = probabilities(pairs), probabilities([(t, s) for s, t in pairs])
    found = collections.Counter()
    for source, target in pairs:
        origins = best(target, source, forward)
        translations = best(source, target, backward)
        for j, i in enumerate(origins):
            if i is not None and translations[i] == j:
                found[source[i], target[j]] += 1
    return found


@pytest.mark.parametrize("seed", [0, 1])
def test_links_are_those_of_plain_loops(seed):
    stream = np.random.default_rng(seed)
    pairs = []
    for _ in range(30):
        source = stream.integers(3, 12, stream.integers(1, 7)).tolist()
        noise = stream.integers(3, 15, stream.integers(0, 3)).tolist()
        target = [word + int(stream.integers(1, 4)) for word in source[::-1]]
        pairs.append((source, target + noise))
    links = word_links.count_links(pairs)
    expected = links_by_loops(pairs)
    found = dict(zip(zip(links.source.tolist(), links.target.tolist()), links.counts.tolist()))
    assert found == dict(expected) and len(found) > 9
    keys = list(zip(links.source.tolist(), links.target.tolist()))
    assert keys == sorted(keys)


def test_a_rare_word_is_linked_with_one_word_only():
    frequent = [([3, 4], [13, 14]), ([4, 5], [14, 15]), ([3, 5], [13, 15])] * 5
    links = word_links.count_links([*frequent, ([3, 9, 4], [13, 19, 14])])
    assert links.target[links.source == 9].tolist() == [19]


def test_pairs_that_cannot_be_aligned_are_skipped():
    messages = []
    pairs = [([3], [4]), ([], [4]), ([3], []), ([3] * 101, [4])]
    links = word_links.count_links(pairs, messages.append)
    assert links.counts.tolist() == [1]
    assert messages == ["skipped 3 pairs with a side that is empty or above 100 words"]
    with pytest.raises(UserError, match="there is no sentence pair to learn a lexicon from"):
        word_links.count_links([([], [3])])

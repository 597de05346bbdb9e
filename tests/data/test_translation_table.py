"""The words of a sentence's memory, against the oracle."""

import numpy as np
import pytest
from oracles import lexical_memory as oracle

from tfmann.data import translation_table
from tfmann.data.word_links import Links
from tfmann.errors import UserError

SENTENCES = [[5, 9, 4], [3], [11], [7, 7, 3, 12, 30], [8, 10, 3, 4, 5, 6], []]


def random_links(seed):
    """Links with equal counts among them, so that ties are broken too; no link of 11."""
    stream = np.random.default_rng(seed)
    counts = stream.integers(1, 5, [13, 20]) * (stream.random([13, 20]) < 0.4)
    counts[:3], counts[:, :3], counts[11] = 0, 0, 0
    source, target = np.nonzero(counts)
    return Links(source, target, counts[source, target])


def tables(links):
    """p(t|s) and p(s|t) as the oracle takes them."""
    forward, backward = {}, {}
    for s, t, count in zip(*(part.tolist() for part in links)):
        of_source = links.counts[links.source == s].sum()
        of_target = links.counts[links.target == t].sum()
        forward.setdefault(s, {})[t] = count / of_source
        backward.setdefault(t, {})[s] = count / of_target
    return forward, backward


@pytest.mark.parametrize("ranks", [1, 3, 5])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_entries_are_those_of_the_oracle(ranks, seed):
    links = random_links(seed)
    table = translation_table.from_links(links, ranks)
    forward, backward = tables(links)
    for ids in SENTENCES:
        words, shares = table.entries(ids, 100)
        assert words.tolist() == oracle.select_entries(ids, forward, {0, 1, 2}, 2 * len(ids), ranks)
        assert shares.shape == (len(words), len(ids))
        for word, of_word in zip(words.tolist(), shares):
            np.testing.assert_allclose(of_word, oracle.source_shares(ids, word, backward))


def test_a_memory_has_a_greatest_size():
    table = translation_table.from_links(random_links(0), 5)
    everything, few = table.entries(SENTENCES[4], 100)[0], table.entries(SENTENCES[4], 4)[0]
    assert len(everything) == 12 and few.tolist() == everything[:4].tolist()


def test_special_tokens_are_not_in_the_table():
    links = Links(np.array([0, 2, 5, 5, 5]), np.array([7, 7, 0, 2, 8]), np.array([9, 9, 9, 9, 1]))
    table = translation_table.from_links(links, 5)
    assert table.entries([0, 2, 5], 100)[0].tolist() == [8]
    with pytest.raises(UserError, match="no word of the text is linked to a word of its"):
        translation_table.from_links(Links(*(part[:4] for part in links)), 5)

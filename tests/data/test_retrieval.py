"""Retrieval of similar sentences, against plain loops and at the edges."""

import numpy as np
import pytest
from oracles import retrieval as oracle

from tfmann.data import retrieval

SIZE = 12
STREAM = np.random.default_rng(5)
SENTENCES = [STREAM.integers(3, SIZE - 1, STREAM.integers(1, 9)).tolist() for _ in range(40)]
SENTENCES += [SENTENCES[3], [4, 4, 4, 4], [5], SENTENCES[3]]
QUERIES = [SENTENCES[3], [4, 5, 6, 4], [5], [7, 8, 9, 10, 3, 4, 5, 6, 7], [SIZE - 1], [10]]


def collection(sentences=SENTENCES):
    packed = retrieval.pack(sentences)
    return packed, retrieval.build_index(packed, SIZE)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("limit", [1, 5, 100])
@pytest.mark.parametrize("block", [1, 4, 64])
def test_hits_are_those_of_the_oracle(query, limit, block, monkeypatch):
    monkeypatch.setattr(retrieval, "_BLOCK", block)
    packed, index = collection()
    result = retrieval.hits(query, index, packed.size, limit).tolist()
    assert result == oracle.hits(query, SENTENCES, limit)


@pytest.mark.parametrize("query", QUERIES)
def test_scores_are_those_of_the_oracle(query):
    packed, index = collection()
    for i, expected in enumerate(oracle.bm25(query, SENTENCES)):
        result = sum(
            index.scores[entry]
            for token in query
            for entry in range(index.starts[token], index.starts[token + 1])
            if index.sentences[entry] == i
        )
        assert result == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("query", QUERIES)
def test_similarities_are_those_of_the_oracle(query):
    result = retrieval.similarities(np.array(query), [np.array(sentence) for sentence in SENTENCES])
    expected = [oracle.similarity(query, sentence) for sentence in SENTENCES]
    np.testing.assert_allclose(result, expected, atol=1e-12)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("count, limit", [(1, 3), (4, 10), (60, 64)])
def test_what_is_retrieved_is_what_the_oracle_retrieves(query, count, limit):
    result = retrieval.retrieve(query, *collection(), count, limit)
    assert result == oracle.retrieve(query, SENTENCES, count, limit)


def test_equal_sentences_come_in_their_order():
    assert retrieval.retrieve(SENTENCES[3], *collection(), 3, 20) == [3, 40, 43]


def test_an_unknown_word_is_like_no_other():
    packed, index = collection([[0, 0, 0], [0, 4], [5]])
    assert retrieval.retrieve([0], packed, index, 3, 3) == []
    assert retrieval.retrieve([0, 4], packed, index, 3, 3) == [1]
    assert retrieval.edit_distances(np.array([0, 4]), [np.array([0, 4])]).tolist() == [1]


def test_sentences_are_packed_and_unpacked():
    packed = retrieval.pack(SENTENCES)
    assert packed.size == len(SENTENCES)
    assert [packed.sentence(i).tolist() for i in range(packed.size)] == SENTENCES

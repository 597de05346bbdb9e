from __future__ import annotations

import numpy as np
import pytest

from tfmann.errors import UserError
from tfmann.evaluation import alignment

# Rows: two target words and </s>; columns: three source words and </s>.
ATTENTION = np.array(
    [
        [0.1, 0.2, 0.6, 0.1],
        [0.3, 0.1, 0.1, 0.5],
        [0.0, 0.0, 0.0, 1.0],
    ]
)


def test_highest_weight_among_the_words():
    # Target word 1 looks at </s> most, which is left out; its best word is 0.
    links = alignment.hard_alignment(ATTENTION, 4, 3, append_source_eos=True)
    assert links == [(2, 0), (0, 1)]
    assert all(type(position) is int for link in links for position in link)


def test_without_a_source_eos_the_last_column_is_a_word():
    links = alignment.hard_alignment(ATTENTION, 4, 3, append_source_eos=False)
    assert links == [(2, 0), (3, 1)]


def test_padding_is_ignored():
    padded = np.full([6, 9], 0.9)
    padded[:3, :4] = ATTENTION
    links = alignment.hard_alignment(padded, 4, 3, append_source_eos=True)
    assert links == [(2, 0), (0, 1)]


def test_ties_and_words_without_weight():
    attention = np.array([[0.4, 0.4, 0.2], [0.0, 0.0, 1.0], [np.nan, 0.5, 0.5], [0, 0, 1]])
    assert alignment.hard_alignment(attention, 3, 4, append_source_eos=True) == [(0, 0)]


def test_blank_sentences_have_no_links():
    assert alignment.hard_alignment(np.ones([2, 1]), 1, 2, append_source_eos=True) == []
    assert alignment.hard_alignment(np.ones([1, 2]), 2, 1, append_source_eos=True) == []


def test_pharaoh_round_trip():
    links = [(2, 0), (0, 1), (10, 11)]
    assert alignment.format_pharaoh(links) == "2-0 0-1 10-11"
    gold = alignment.parse_pharaoh("2-0 0-1\t10-11 ", line_number=1)
    assert gold.sure == gold.possible == frozenset(links)
    assert alignment.format_pharaoh([]) == ""
    assert alignment.parse_pharaoh("", line_number=1).possible == frozenset()


def test_possible_links():
    gold = alignment.parse_pharaoh("0-0 1p2 3p1", line_number=1)
    assert gold.sure == {(0, 0)}
    assert gold.possible == {(0, 0), (1, 2), (3, 1)}


@pytest.mark.parametrize(
    "item", ["1", "1-", "-1", "a-b", "1-2-3", "1:2", "1--2", "1.0-2", "٣-1", "9" * 5000 + "-1"]
)
def test_bad_links_name_the_line(item):
    with pytest.raises(UserError, match="gold.align, line 7: .* is not a link"):
        alignment.parse_pharaoh(f"0-0 {item}", line_number=7, path="gold.align")


def test_read_pharaoh(tmp_path):
    path = tmp_path / "gold"
    path.write_text("0-0\n\n1p0\n")
    assert [len(gold.possible) for gold in alignment.read_pharaoh(str(path))] == [1, 0, 1]
    path.write_text("0-0\nx\n")
    with pytest.raises(UserError, match="gold, line 2"):
        alignment.read_pharaoh(str(path))


def test_aer_by_hand():
    # |A| = 4, |S| = 3, A and S = {(0,0), (1,1)}, A and P = those and (2,1): 1 - 5/7.
    hypothesis = [[(0, 0), (2, 1)], [(1, 1), (5, 5)]]
    sure = [[(0, 0)], [(1, 1), (2, 2)]]
    possible = [[(2, 1)], []]
    assert alignment.quality(hypothesis, sure, possible).aer == pytest.approx(2 / 7)
    # Counted over the whole set, which differs from the mean over sentences (0 and 1/2).
    with_sure = [[(0, 0), (2, 1)], [(1, 1), (2, 2)]]
    assert alignment.quality(hypothesis, sure, with_sure).aer == pytest.approx(2 / 7)


def test_aer_limits():
    sure = [[(0, 0), (1, 1)]]
    assert alignment.quality(sure, sure, sure).aer == 0.0
    assert alignment.quality([[(0, 0), (0, 0), (1, 1)]], sure, sure).aer == 0.0
    assert alignment.quality([[(0, 1)]], sure, sure).aer == 1.0
    assert alignment.quality([[]], sure, sure).aer == 1.0


def test_aer_refuses_what_it_cannot_compare():
    with pytest.raises(UserError, match="2 sentences .* 1 "):
        alignment.quality([[], []], [[]], [[]])
    with pytest.raises(UserError, match="no alignment links"):
        alignment.quality([[]], [[]], [[(0, 0)]])


def test_other_ways_to_write_links():
    gold = alignment.parse_pharaoh("1-1 2?3 4p2", line_number=1, first=1)
    assert gold.sure == {(0, 0)} and gold.possible == {(0, 0), (1, 2), (3, 1)}
    gold = alignment.parse_pharaoh("0-1 2?3", line_number=1, reverse=True)
    assert gold.sure == {(1, 0)} and gold.possible == {(1, 0), (3, 2)}


@pytest.mark.parametrize("item", ["0-1", "1-0", "0p1", "0?0"])
def test_a_position_before_the_first(item):
    with pytest.raises(UserError, match=r"gold, line 3: '.*' is not a link .* counted from 1"):
        alignment.parse_pharaoh(f"1-1 {item}", 3, "gold", first=1)
    assert alignment.parse_pharaoh(item, 3, "gold").possible


def oracle_quality(answers, sure, possible):
    """Och & Ney's three quotients, link by link over the cells of matrices."""
    hits_sure = hits_possible = links = expected = 0
    for a, s, p in zip(answers, sure, possible):
        for i in range(9):
            for j in range(9):
                link = (i, j)
                links += link in a
                expected += link in s
                hits_sure += link in a and link in s
                hits_possible += link in a and (link in s or link in p)
    return (
        1 - (hits_sure + hits_possible) / (links + expected),
        hits_possible / links,
        hits_sure / expected,
    )


def random_links(stream, count):
    return [{tuple(map(int, stream.integers(0, 9, 2))) for _ in range(9)} for _ in range(count)]


def test_quality_against_the_oracle():
    stream = np.random.default_rng(2)
    for _ in range(20):
        answers, sure, possible = (random_links(stream, 3) for _ in range(3))
        quality = alignment.quality(answers, sure, possible)
        np.testing.assert_allclose(quality, oracle_quality(answers, sure, possible))


def test_published_example():
    """NLTK's documentation of alignment_error_rate: three sure links, one of them found: 2/3."""
    gold, answers = [[(0, 0), (1, 1), (2, 2)]], [[(0, 0), (1, 2), (2, 1)]]
    assert alignment.quality(answers, gold, gold) == pytest.approx((2 / 3, 1 / 3, 1 / 3))


def test_properties_that_och_and_ney_name():
    """No error where S is in A and A in P; 1 - F where all links are sure."""
    stream = np.random.default_rng(3)
    possible = random_links(stream, 4)
    answers = [set(sorted(links)[:6]) for links in possible]
    sure = [set(sorted(links)[:3]) for links in possible]
    assert alignment.quality(answers, sure, possible) == (0.0, 1.0, 1.0)
    error, precision, recall = alignment.quality(answers, possible, possible)
    assert error == pytest.approx(1 - 2 * precision * recall / (precision + recall))


def test_quality_of_nothing():
    assert alignment.quality([[]], [[(0, 0)]], [[]]) == (1.0, 1.0, 0.0)
    assert alignment.quality([[(0, 0)]], [[]], [[(0, 0)]]) == (0.0, 1.0, 1.0)


def test_soft_aer_by_hand():
    # |M_A| = 1.9, |M_S| = 2; M_A * M_S = 0.5 + 0.6, M_A * M_P = that and 0.3.
    weights = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.2]])  # rows: target words
    error = alignment.soft_aer([weights], [[(0, 0), (1, 1)]], [[(1, 0)]])
    assert error == pytest.approx(1 - (1.1 + 1.4) / 3.9)


def test_soft_aer_of_hard_weights_is_the_aer():
    stream = np.random.default_rng(4)
    for _ in range(10):
        actual, sure, possible = (random_links(stream, 3) for _ in range(3))
        weights = [np.zeros([9, 9]) for _ in actual]
        for matrix, links in zip(weights, actual):
            for i, j in links:
                matrix[j, i] = 1.0
        expected = alignment.quality(actual, sure, possible).aer
        assert alignment.soft_aer(weights, sure, possible) == pytest.approx(expected)


def test_soft_aer_leaves_out_the_end_on_both_sides():
    words = alignment.word_attention(ATTENTION, 4, 3, append_source_eos=True)
    assert words.shape == (2, 3)
    # 0.9 + 0.5 on words, one sure link with 0.6.
    error = alignment.soft_aer([words], [[(2, 0)]], [[]])
    assert error == pytest.approx(1 - 2 * 0.6 / (1.4 + 1))


def test_soft_aer_refuses_what_it_cannot_compare():
    for link in ((2, 0), (0, 3)):
        with pytest.raises(UserError, match="sentence 2: the reference links .* 2 source and 3 "):
            alignment.soft_aer([np.ones([3, 2])] * 2, [[], []], [[(1, 2)], [link]])
    with pytest.raises(UserError, match="1 sentences .* 2 "):
        alignment.soft_aer([np.ones([1, 1])], [[], []], [[], []])
    with pytest.raises(UserError, match="no alignment links"):
        alignment.soft_aer([np.zeros([2, 2])], [[]], [[(0, 0)]])

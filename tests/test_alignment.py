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
    assert alignment.aer(hypothesis, sure, possible) == pytest.approx(2 / 7)
    # Counted over the whole set, which differs from the mean over sentences (0 and 1/2).
    with_sure = [[(0, 0), (2, 1)], [(1, 1), (2, 2)]]
    assert alignment.aer(hypothesis, sure, with_sure) == pytest.approx(2 / 7)


def test_aer_limits():
    sure = [[(0, 0), (1, 1)]]
    assert alignment.aer(sure, sure, sure) == 0.0
    assert alignment.aer([[(0, 0), (0, 0), (1, 1)]], sure, sure) == 0.0
    assert alignment.aer([[(0, 1)]], sure, sure) == 1.0
    assert alignment.aer([[]], sure, sure) == 1.0


def test_aer_refuses_what_it_cannot_compare():
    with pytest.raises(UserError, match="2 sentences .* 1 "):
        alignment.aer([[], []], [[]], [[]])
    with pytest.raises(UserError, match="no alignment links"):
        alignment.aer([[]], [[]], [[(0, 0)]])

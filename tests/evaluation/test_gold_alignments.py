"""Sets with gold links: their files belong together, their scores are those worked out by hand."""

import numpy as np
import pytest

from tfmann.errors import UserError
from tfmann.evaluation import gold_alignments
from tfmann.evaluation.alignment import GoldAlignment

SOURCES, REFERENCES = ["la mara", "hunda"], ["the woman", "a dog"]


@pytest.fixture
def paths(tmp_path):
    """Writes the three files; returns their paths."""

    def write(links=("0-0 1-1 0p1", "0-1"), source=SOURCES, reference=REFERENCES):
        for name, lines in (("links", links), ("src", source), ("ref", reference)):
            (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
        return [tmp_path / name for name in ("links", "src", "ref")]

    return write


def test_a_set_is_words_and_links(paths):
    gold = gold_alignments.read(*paths())
    assert gold.sources == [["la", "mara"], ["hunda"]]
    assert gold.references == [["the", "woman"], ["a", "dog"]]
    assert gold.sure == [{(0, 0), (1, 1)}, {(0, 1)}]
    assert gold.possible == [{(0, 0), (1, 1), (0, 1)}, {(0, 1)}]


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"links": ["0-0"]}, r"links.*src.* do not match: 1 .*2|src and .*links do not match"),
        ({"reference": ["the woman"]}, "ref"),
        ({"links": ["0-0", "0:1"]}, "links, line 2: '0:1' is not a link"),
        ({"links": ["0-0", "1-1"]}, r"links, line 2: 1-1 .* 1 words in .*src and 2 in .*ref"),
        ({"links": ["0-2", ""]}, "links, line 1: 0-2 .* 2 words in .*src and 2 in .*ref"),
        ({"links": ["0p0", ""]}, "links: expected at least one sure link"),
    ],
)
def test_files_that_do_not_belong_together_are_refused(paths, changes, words):
    with pytest.raises(UserError, match=words):
        gold_alignments.read(*paths(**changes))


def test_alignment_error_is_that_worked_out_by_hand():
    links = [GoldAlignment(frozenset({(0, 0)}), frozenset({(0, 0), (1, 0)}))]
    links += [GoldAlignment(frozenset({(0, 1), (1, 0)}), frozenset({(0, 1), (1, 0)}))]
    expected = gold_alignments.GoldSet([["a", "b"]] * 2, [["x", "y"]] * 2, links)
    attention = [np.array([[0.4, 0.6], [1.0, 0.0]]), np.array([[0.3, 0.5], [0.0, 0.0]])]
    actual = gold_alignments.alignment_scores(expected, attention, [[(1, 0), (0, 1)], [(1, 0)]])
    # 3 links in the hypothesis, 1 of them sure, 2 possible; 3 sure links
    assert actual["aer"] == pytest.approx(1 - (1 + 2) / (3 + 3))
    assert (actual["precision"], actual["recall"]) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    # the weights: 2.8 in all, on sure links 0.4 + 0.5, on possible ones 0.6 more
    assert actual["soft_aer"] == pytest.approx(1 - (0.9 + 1.5) / (2.8 + 3))
    counts = [actual[key] for key in ("sentences", "links", "sure", "possible")]
    assert counts == [2, 3, 3, 4]
    assert actual["by_sentence"] == {
        "in_sure": [0, 1], "in_possible": [1, 1], "links": [2, 1], "sure": [1, 2],
    }  # fmt: skip


def test_adequacy_is_that_worked_out_by_hand(paths):
    expected = gold_alignments.read(*paths())
    translations = ["the lady", "dog dog"]  # "woman" is missing, but "lady" is there; "dog" twice
    with_links = gold_alignments.adequacy_scores(
        expected, translations, [[(0, 0), (1, 1)], [(0, 0), (0, 1)]]
    )
    third = pytest.approx(1 / 3)
    assert with_links == {
        "under": 0.0, "reworded": third, "over": third, "judged": 3, "source_words": 3,
        "by_sentence": {"judged": [2, 1], "under": [0, 0], "reworded": [1, 0], "over": [0, 1]},
    }  # fmt: skip
    without = gold_alignments.adequacy_scores(expected, translations, None)
    by_sentence = {"judged": [2, 1], "under": [1, 0], "over": [0, 1]}
    assert without == {
        **with_links, "under": third, "reworded": None, "by_sentence": by_sentence,
    }  # fmt: skip

"""The votes of a word memory: added up by entry, and drawn."""

from __future__ import annotations

import unicodedata
import warnings

import numpy as np
import pytest
from helpers.traces import drawn_weights, head_trace, tick_labels

from tfmann.decoding.word_memory_entries import Entry, Votes, WordMemory, collect, take_votes
from tfmann.visualization import image_files, word_memory_figures
from tfmann.visualization.sentence_figures import sentence_figures

TOKENS = ["we", "felt", "</s>"]


def memory_of(entries, steps=3, seed=0):
    """Returns random votes of so many entries."""
    rng = np.random.default_rng(seed)
    share, model, memory = rng.uniform(size=(3, steps))
    weights = rng.dirichlet(np.ones(entries), steps) if entries else np.zeros([steps, 0])
    of_entries = [Entry(f"w{i}", f"{i} words ago") for i in range(entries)]
    return WordMemory(share, model, memory, of_entries, weights)


def test_votes_are_added_up_by_entry():
    votes = Votes(
        share=np.array([0.5, 0.25]),
        model=np.array([0.1, 0.2]),
        weights=np.array([[0.5, 0.3, 0.2], [0.6, 0.4, 0.0]]),
        words=np.array([[7, 8, 7], [8, 9, -1]]),
        places=np.array([[4, 0, 2], [0, 5, 1]]),
    )
    origins = [f"origin {place}" for place in range(6)]
    memory = collect(votes, [7, 8], origins, lambda ids: [f"word {number}" for number in ids])
    assert memory.entries == [
        Entry("word 8", "origin 0"), Entry("word 7", "origin 2"), Entry("word 7", "origin 4"),
        Entry("word 9", "origin 5"),
    ]  # fmt: skip
    assert memory.weights.tolist() == [[0.3, 0.2, 0.5, 0.0], [0.6, 0.0, 0.0, 0.4]]
    assert memory.memory.tolist() == pytest.approx([0.7, 0.6])
    assert memory.share is votes.share and memory.model is votes.model


def test_votes_are_taken_out_of_the_diagnostics_and_cut():
    votes = Votes(*(np.arange(4) + number for number in range(5)))
    arrays = {"alignments": np.ones(4), **votes.as_diagnostics()}
    taken = take_votes(arrays, 3)
    assert [part.tolist() for part in taken] == [[i, i + 1, i + 2] for i in range(5)]
    assert list(arrays) == ["alignments"] and take_votes(arrays, 3) is None


def test_the_share_and_both_probabilities_are_above_the_entries():
    memory = memory_of(4)
    above, below, _ = word_memory_figures.word_memory_figure(memory, TOKENS, "a title").axes
    expected = np.stack([memory.share, memory.model, memory.memory])
    assert np.array_equal(drawn_weights(above), expected)
    assert tick_labels(above, "y") == ["share of the memory", "p by the model", "p by the memory"]
    assert tick_labels(above, "x") == TOKENS and tick_labels(below, "x") == []
    assert above.get_title(loc="left") == "a title"
    order = sorted(range(4), key=lambda i: -memory.weights[:, i].sum())
    assert np.array_equal(drawn_weights(below), memory.weights.T[order])
    assert tick_labels(below, "y") == [f"w{i} ({i} words ago)" for i in order]
    strips, matrix = above.get_position(), below.get_position()
    assert strips.y0 > matrix.y1 and (strips.x0, strips.x1) == (matrix.x0, matrix.x1)


@pytest.mark.parametrize("word", ["ספר", "كتاب", "word"])
def test_an_origin_is_read_from_left_to_right(word):
    """The first strong letter of a text has its direction (Unicode's annex 9, rule P2)."""
    memory = memory_of(1)._replace(entries=[Entry(word, "1 word ago")])
    figure = word_memory_figures.word_memory_figure(memory, TOKENS)
    [label] = tick_labels(figure.axes[1], "y")
    assert label.lstrip("\u200e") == f"{word} (1 word ago)"
    directions = map(unicodedata.bidirectional, label)
    assert next(one for one in directions if one in ("L", "R", "AL")) == "L"
    assert image_files.figure_to_png(figure).startswith(b"\x89PNG")


def test_the_entries_with_little_weight_are_added_up():
    memory = memory_of(word_memory_figures.MOST_ENTRIES + 5)
    _, below, _ = word_memory_figures.word_memory_figure(memory, TOKENS).axes
    drawn = drawn_weights(below)
    assert len(drawn) == word_memory_figures.MOST_ENTRIES + 1
    assert tick_labels(below, "y")[-1] == "5 others"
    np.testing.assert_allclose(drawn.sum(axis=0), 1.0)
    totals = np.sort(memory.weights.sum(axis=0))
    np.testing.assert_allclose(drawn[:-1].sum(axis=1), totals[::-1][: len(drawn) - 1])


def test_an_entry_that_hardly_votes_has_no_row():
    memory = memory_of(3)
    weights = np.concatenate([0.99 * memory.weights, np.full([3, 1], 0.009)], axis=1)
    weights = np.concatenate([weights, np.full([3, 1], 0.001)], axis=1)
    entries = [*memory.entries, Entry("rare", "9 words ago"), Entry("rarer", "1 word ago")]
    memory = memory._replace(weights=weights, entries=entries)
    _, below, _ = word_memory_figures.word_memory_figure(memory, TOKENS).axes
    assert len(tick_labels(below, "y")) == 4 and tick_labels(below, "y")[-1] == "2 others"
    np.testing.assert_allclose(drawn_weights(below)[-1], 0.01)


def test_the_table_has_the_numbers_and_the_greatest_votes():
    weights = np.array(
        [[0.25, 0.75, 0.0, 0.0001, 0, 0, 0], [0.1, 0.2, 0.3, 0.05, 0.15, 0.16, 0.04]]
    )
    memory = memory_of(7, 2)._replace(
        share=np.array([0.5, 0.25]), model=np.array([1 / 3, 0.0]), memory=np.array([0.75, 1.0]),
        weights=weights,
    )  # fmt: skip
    lines = word_memory_figures.word_memory_table(memory, ["a|b", "</s>"]).splitlines()
    votes = "0.750 `w1 (1 words ago)`; 0.250 `w0 (0 words ago)`"
    assert lines[2] == f"| `a\\|b` | 0.5000 | 0.3333 | 0.7500 | {votes} |"
    assert lines[3].count(" words ago") == 5 and "0.050" not in lines[3] and "w6" not in lines[3]
    assert lines[3].startswith(
        "| `</s>` | 0.2500 | 0.0000 | 1.0000 | 0.300 `w2 (2 words ago)`; 0.200"
    )


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"weights \(3, 4\) do not match 2 words and 4 entries"):
        word_memory_figures.word_memory_figure(memory_of(4), TOKENS[:2])


def test_a_sentence_has_the_figure_if_its_memory_has_entries():
    trace = head_trace()
    assert "word_memory" not in dict(sentence_figures(trace))
    for entries, is_drawn in ((0, False), (2, True)):
        trace.word_memory = memory_of(entries, len(trace.tokens))
        assert ("word_memory" in dict(sentence_figures(trace))) == is_drawn


@pytest.mark.parametrize("entries", [1, 100])
@pytest.mark.parametrize("steps", [1, 80])
def test_any_number_of_entries_and_words(entries, steps):
    memory = memory_of(entries, steps)
    memory = memory._replace(entries=[Entry("$x^{", "昨日")] * entries)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = word_memory_figures.word_memory_figure(memory, ["昨日"] * steps, "$\\frac{$")
        assert image_files.figure_to_png(figure).startswith(b"\x89PNG\r\n\x1a\n")

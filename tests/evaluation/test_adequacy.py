"""Under- and over-translation: by hand, and on the synthetic corpus, whose truth is known."""

from collections import Counter

import numpy as np
import pytest

from tfmann.errors import UserError
from tfmann.evaluation.adequacy import Adequacy, Judgement, adequacy, judge
from tfmann.synthetic import generate

# src:        0    1    2    3     4
# ref:      the  old house  near  the garden
SURE = [(0, 0), (0, 2), (1, 1), (2, 3), (3, 4), (3, 5)]
REFERENCE = "the old house near the garden".split()
FREQUENCY = Counter(REFERENCE)


def judge_words(hypothesis, links=None, reference=REFERENCE, sure=SURE):
    frequency = FREQUENCY + Counter(reference)
    verdict = judge(reference, hypothesis.split(), sure, frequency, links)
    return verdict.under, verdict.reworded, verdict.over


def test_the_reference_itself_lacks_nothing():
    assert judge_words("the old house near the garden") == ([], [], [])
    assert judge(REFERENCE, REFERENCE, SURE, FREQUENCY).judged == [0, 1, 2, 3]
    assert judge_words("near the garden the old house") == ([], [], []), "order does not matter"


@pytest.mark.parametrize(
    "hypothesis, under",
    [
        ("", [0, 1, 2, 3]),
        ("the house near the garden", [1]),
        ("old house near garden", []),  # an article does not count
        ("the old near the garden", [0]),  # and does not count as its noun
        ("near the garden", [0, 1]),
        ("the old house", [2, 3]),
        ("the old home near the garden", [0]),
    ],
)
def test_what_is_left_out(hypothesis, under):
    assert judge_words(hypothesis) == (under, [], [])


@pytest.mark.parametrize(
    "hypothesis, over",
    [
        ("the the old house near the garden", []),
        ("the old old house near the garden", [1]),
        ("the old house house near the garden", [0]),
        ("the old house near the garden the old house", [0, 1]),
        ("the old house near near near the garden", [2]),
        ("the old house of stone near the garden , I see", []),
    ],
)
def test_over_translated_words(hypothesis, over):
    assert judge_words(hypothesis) == ([], [], over)


def test_links_tell_a_rewording_from_an_omission():
    links = [(0, 0), (1, 1), (0, 2), (2, 3), (3, 4), (3, 5)]
    assert judge_words("the old home near the garden", links) == ([], [0], [])
    assert judge_words("the old home near the garden", []) == ([0], [], [])
    # A word that the reference has is no rewording of another: "near" does not mean the house.
    assert judge_words("the old near near the garden", links) == ([0], [], [2])


def test_of_repeated_words_the_links_say_which():
    reference, sure = "red and red hats".split(), [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert judge_words("red hats", None, reference, sure)[0] == [0, 1]  # "red hats" is adjacent
    assert judge_words("red hats", [(0, 0), (3, 1)], reference, sure)[0] == [1, 2]
    assert judge_words("red red and red hats", None, reference, sure)[2] == [0]
    links = [(0, 0), (2, 1), (1, 2), (2, 3), (3, 4)]
    assert judge_words("red red and red hats", links, reference, sure)[2] == [2]


def test_one_word_from_several_and_several_from_one():
    reference, sure = "she kisses him".split(), [(0, 0), (1, 1), (2, 1), (3, 2)]
    assert judge_words("she him", None, reference, sure)[0] == [1, 2]
    assert judge_words("she kisses kisses him", None, reference, sure)[2] == [1, 2]


def test_without_links_of_repeated_words_the_nearest_is_meant():
    reference = "red a b c d red e".split()
    sure = [(i, i) for i in range(7)]
    assert judge_words("red a b c d red red e", None, reference, sure)[2] == [5]
    assert judge_words("red red a b c d red e", None, reference, sure)[2] == [0]
    assert judge_words("x x x x x red x", None, reference, sure)[0] == [0, 1, 2, 3, 4, 6]


def test_of_equally_rare_words_the_longest_is_the_head():
    sure = [(0, 0), (0, 1)]
    assert judge(["of", "cats"], ["of"], sure, Counter(["of", "cats"])).under == [0]
    assert judge(["of", "cats"], ["cats"], sure, Counter(["of", "cats"])).under == []


def test_of_words_of_equal_length_too_the_first_is_the_head():
    sure, frequency = [(0, 0), (0, 1)], Counter(["old", "cat"])
    assert judge(["old", "cat"], ["old"], sure, frequency).under == []
    assert judge(["old", "cat"], ["cat"], sure, frequency).under == [0]


def test_a_head_that_is_there_twice_is_translated_by_either():
    assert judge_words("x so", None, ["so", "so"], [(0, 0), (0, 1)]) == ([], [], [])


def test_one_of_several_words_is_paired_with_that_at_its_share_of_the_sentence():
    reference, diagonal = "red a b c red d e f".split(), [(i, i) for i in range(8)]
    assert judge_words("x x red x", None, reference, diagonal)[0] == [0, 1, 2, 3, 5, 6, 7]
    # as close to the diagonal as the other: the first
    assert judge_words("x red x", None, ["red", "a", "red"], diagonal[:3])[0] == [1, 2]


def test_of_words_as_near_to_a_superfluous_one_the_first_is_repeated():
    reference, sure = ["red", "a", "red"], [(i, i) for i in range(3)]
    assert judge_words("red x red y red", None, reference, sure)[2] == [0]


def test_source_words_without_a_sure_link_are_not_judged():
    counts = adequacy([["a", "b", "c"]], [["x", "y"]], [[]], [[(1, 0)]])
    assert counts == Adequacy(3, [Judgement(judged=[1], under=[1], reworded=[], over=[])])
    assert (counts.judged, counts.under, counts.reworded, counts.over) == (1, 1, 0, 0)
    assert (counts.under_share, counts.reworded_share, counts.over_share) == (1.0, 0.0, 0.0)


def test_words_are_counted_in_all_references():
    """In the second sentence alone, "the" would be as rare as "cat", and comes first."""
    references = [["the", "dog", "the"], ["the", "cat"]]
    sure = [[], [(0, 0), (0, 1)]]
    counts = adequacy([[], ["s"]], references, [[], ["the"]], sure)
    assert (counts.judged, counts.under) == (1, 1)


def test_what_cannot_be_judged():
    with pytest.raises(UserError, match="1, 2, 1, 1"):
        adequacy([["a"]], [["x"], ["y"]], [["x"]], [[(0, 0)]])
    with pytest.raises(UserError, match="no source word has a sure link"):
        adequacy([["a"]], [["x"]], [["x"]], [[]])
    with pytest.raises(UserError, match="the sure links, line 2: 0-1 "):
        adequacy([["a"]] * 2, [["x"]] * 2, [["x"]] * 2, [[(0, 0)], [(0, 1)]])
    with pytest.raises(UserError, match="^links, line 1: 1-0 "):
        names = ("gold", "links")
        adequacy([["a"]], [["x"]], [["x"]], [[(0, 0)]], [[(1, 0)]], names)


EXAMPLES = generate(400, seed=5)
COUNTS = Counter(word for example in EXAMPLES for word in example.target)


def entries(example):
    """A sentence cut into its smallest translations: sets of source and of target positions."""
    parts = [({i}, {j}) for i, j in example.alignment]
    merged = []
    for source, target in parts:
        disjoint = []
        for entry in merged:
            if entry[0] & source or entry[1] & target:
                source, target = source | entry[0], target | entry[1]
            else:
                disjoint.append(entry)
        merged = [*disjoint, (source, target)]
    return merged


def edit_reference(example, left_out, repeated):
    """The reference without one entry and with another repeated; words and links."""
    words, links = [], []

    def add_word(j):
        links.extend((i, len(words)) for i, target in example.alignment if target == j)
        words.append(example.target[j])

    for j in range(len(example.target)):
        if j not in left_out[1]:
            add_word(j)
        if repeated[1] and j == max(repeated[1]):
            for repeated_word in sorted(repeated[1]):
                add_word(repeated_word)
    return words, links


NOTHING = (set(), set())


def cases():
    stream = np.random.default_rng(7)
    for example in EXAMPLES:
        parts = entries(example)
        first, second = (parts[i] for i in stream.permutation(len(parts))[:2])
        spelled = [{example.target[j] for j in part[1]} - {"the"} for part in (first, second)]
        if not spelled[0] & spelled[1]:  # or the one counts as the other
            yield example, first, second
        yield example, first, NOTHING
        yield example, NOTHING, second


def test_known_omissions_and_repetitions_are_found_exactly():
    kinds = Counter()
    for example, left_out, repeated in cases():
        words, links = edit_reference(example, left_out, repeated)
        verdict = judge(example.target, words, example.alignment, COUNTS, links)
        case = (" ".join(example.target), " ".join(words))
        assert verdict.under == sorted(left_out[0]), case
        assert verdict.over == sorted(repeated[0]), case
        assert verdict.reworded == []
        assert verdict.judged == sorted({i for i, _ in example.alignment})
        kinds[bool(left_out[0]), bool(repeated[0])] += 1
    assert min(kinds.values()) > 300 and len(kinds) == 3


def test_without_links_the_same_words_are_found():
    """Only which one of several words of the same spelling it was cannot be known then."""
    for example, left_out, repeated in cases():
        words, _ = edit_reference(example, left_out, repeated)
        verdict = judge(example.target, words, example.alignment, COUNTS)

        def spell(positions, source=example.source):
            return sorted(source[i] for i in positions)

        case = (" ".join(example.source), " ".join(example.target), " ".join(words))
        assert spell(verdict.under) == spell(left_out[0]), case
        assert spell(verdict.over) == spell(repeated[0]), case


def test_counts_of_a_set():
    all_cases = list(cases())
    hypotheses, links = zip(*(edit_reference(*case) for case in all_cases))
    examples = [case[0] for case in all_cases]
    sources, references = [e.source for e in examples], [e.target for e in examples]
    sure = [e.alignment for e in examples]
    counts = adequacy(sources, references, hypotheses, sure, links)
    assert counts.source_words == sum(map(len, sources))
    assert counts.under == sum(len(left_out[0]) for _, left_out, _ in all_cases)
    assert counts.over == sum(len(repeated[0]) for _, _, repeated in all_cases)
    assert counts.reworded == 0
    assert counts.under_share == counts.under / counts.judged
    assert counts.over_share == counts.over / counts.judged

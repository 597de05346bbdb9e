"""Contrasts: each is scored after the references before it, and items are counted."""

import pytest

from tfmann.errors import UserError
from tfmann.evaluation import contrastive

PAIRS = [("s0", "r0"), ("s1", "r1"), ("s2", "r2"), ("s3", "r3"), ("s4", "r4")]
DOCUMENTS = [1, 1, 1, 2, 2]
CONTRASTS = [[], ["x"], ["y", "z"], [], ["w"]]


def with_earlier_translations(pairs, documents):
    """Each pair's translation, with those before it in its document."""
    translations = {}
    for (source, translation), document in zip(pairs, documents):
        before = translations.setdefault(document, [])
        yield source, [*before, translation]
        before.append(translation)


def test_a_contrast_is_scored_after_the_references_before_it():
    calls = []

    def score(pairs, documents):
        calls.append(list(with_earlier_translations(pairs, documents)))
        return list(range(len(pairs)))

    scores = contrastive.contrast_scores(score, PAIRS, CONTRASTS, DOCUMENTS, True)
    (forced,) = calls
    assert [[forced[i] for i in several] for several in scores] == [
        [],
        [("s1", ["r0", "x"])],
        [("s2", ["r0", "r1", "y"]), ("s2", ["r0", "r1", "z"])],
        [],
        [("s4", ["r3", "w"])],
    ]
    contrastive.contrast_scores(score, PAIRS, CONTRASTS, DOCUMENTS, False)
    single = [("s1", ["x"]), ("s2", ["y"]), ("s2", ["z"]), ("s4", ["w"])]
    assert calls[1] == single


def test_an_item_is_right_if_its_reference_is_above_all_contrasts():
    scores = [[], [-3.0], [-1.0, -9.0], [-2.0], [-4.0, -5.0]]
    assert contrastive.accuracy([-1.0, -2.0, -5.0, -2.0, -3.0], scores) == (2, 4)


def test_contrasts_are_read_from_lines():
    contrasts = contrastive.read_contrasts(["", "x y", "x |||  y z ", "  "])
    assert contrasts == [[], ["x y"], ["x", "y z"], []]
    for lines, words in (([""], "all lines are blank"), (["x", "y ||| "], "line 2 of the contr")):
        with pytest.raises(UserError, match=words):
            contrastive.read_contrasts(lines)

"""Contrasts: each is scored after the references before it, and items are counted."""

import pytest

from tfmann.errors import UserError
from tfmann.evaluation import contrastive

PAIRS = [("s0", "r0"), ("s1", "r1"), ("s2", "r2"), ("s3", "r3"), ("s4", "r4")]
DOCUMENTS = [1, 1, 1, 2, 2]
CONTRASTS = [[], ["x"], ["y", "z"], [], ["w"]]


def with_earlier_translations(pairs, documents, remembered):
    """Each pair's translation, with the remembered ones before it in its document."""
    translations = {}
    for (source, translation), document, is_remembered in zip(pairs, documents, remembered):
        before = translations.setdefault(document, [])
        yield source, [*before, translation]
        if is_remembered:
            before.append(translation)


def test_translations_are_scored_once_after_the_references_before_them():
    calls = []

    def score(pairs, documents, remembered):
        calls.append(list(with_earlier_translations(pairs, documents, remembered)))
        return list(range(len(pairs)))

    scores = contrastive.contrast_scores(score, PAIRS, CONTRASTS, DOCUMENTS)
    (forced,) = calls
    assert [[forced[i] for i in of_sentence] for of_sentence in scores] == [
        [("s0", ["r0"])],
        [("s1", ["r0", "r1"]), ("s1", ["r0", "x"])],
        [("s2", ["r0", "r1", "r2"]), ("s2", ["r0", "r1", "y"]), ("s2", ["r0", "r1", "z"])],
        [("s3", ["r3"])],
        [("s4", ["r3", "r4"]), ("s4", ["r3", "w"])],
    ]
    assert len(forced) == 9


def test_an_item_is_right_if_its_reference_is_above_all_contrasts():
    scores = [[-1.0], [-2.0, -3.0], [-5.0, -1.0, -9.0], [-2.0, -2.0], [-3.0, -4.0, -5.0]]
    assert contrastive.accuracy(scores) == (2, 4)


def test_contrasts_are_read_from_lines():
    contrasts = contrastive.read_contrasts(["", "x y", "x |||  y z ", "  "], "f")
    assert contrasts == [[], ["x y"], ["x", "y z"], []]
    for lines, words in (([""], "^f: .* all lines are blank"), (["x", "y ||| "], "^f, line 2: ")):
        with pytest.raises(UserError, match=words):
            contrastive.read_contrasts(lines, "f")

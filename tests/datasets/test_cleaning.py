"""Cleaning of training pairs: each rule, its reason, and the order of what stays."""

import pytest

from tfmann.data.text_files import Pair
from tfmann.datasets.cleaning import Cleaner, CleaningRules

PAIRS = [
    Pair("a b", "x y", 0),
    Pair("", "x", 0),
    Pair("a", " ", 1),
    Pair("a b c d", "x y z", 1),
    Pair("a", "x y z", 2),
    Pair("a b", "x y", 3),
    Pair("same  words", "same words", 3),
]


def clean_pairs(**rules):
    cleaner = Cleaner(CleaningRules(**rules))
    return list(cleaner.clean(PAIRS)), dict(cleaner.removed)


def test_empty_sides_always_go():
    pairs, removed = clean_pairs()
    assert pairs == [PAIRS[0], *PAIRS[3:]] and removed == {"empty": 2}


@pytest.mark.parametrize(
    "rules, left_out, reason",
    [
        ({"max_length": 3}, [3], "too long"),
        ({"max_length": 4}, [], "too long"),
        ({"max_ratio": 2.9}, [4], "lengths too different"),
        ({"max_ratio": 3.0}, [], "lengths too different"),
        ({"drop_duplicates": True}, [5], "duplicate"),
        ({"drop_copies": True}, [6], "copied"),
    ],
)
def test_a_rule_leaves_out_its_pairs_and_no_other(rules, left_out, reason):
    pairs, removed = clean_pairs(**rules)
    assert pairs == [pair for i, pair in enumerate(PAIRS) if i not in (1, 2, *left_out)]
    assert removed == {"empty": 2, **({reason: len(left_out)} if left_out else {})}


def test_a_pair_is_a_duplicate_only_if_both_sides_are():
    pairs = [Pair("a", "x", 0), Pair("a", "y", 0), Pair("ab", "c", 0), Pair("a", "bc", 0)]
    pairs.append(pairs[0])
    cleaned_pairs = list(Cleaner(CleaningRules(drop_duplicates=True)).clean(pairs))
    assert cleaned_pairs == pairs[:4]

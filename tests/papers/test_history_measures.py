"""Measures of claims about what a history is good for, from the record of a run."""

from helpers.records import record

from tfmann.papers import metrics

LOST = metrics.MEASURES["BLEU lost to errors in the history"]
ALIKE = metrics.MEASURES["repeated words translated alike"]
SENSES = metrics.MEASURES["nouns of the right sense"]
REPEATED = metrics.MEASURES["repeated bigrams"]


def test_bleu_lost_to_errors_is_what_the_references_would_add():
    with_references = {"test": record("x", 12.5)["best"]["test"]}
    assert LOST(record("cache", 12.0, histories={"reference": with_references})) == 0.5
    assert LOST(record("cache", 13.0, histories={"reference": with_references})) == -0.5


def test_shares_are_in_percent():
    counts = {"pairs": 8, "alike": 6, "other_pairs": 4, "other_alike": 1}
    assert ALIKE(record("cache", lexical_consistency=counts)) == 75.0
    assert SENSES(record("cache", senses={"nouns": 10, "right": 4, "other_right": 3})) == 40.0
    bigrams = [{"order": 1, "repeated": 9, "ngrams": 10}, {"order": 2, "repeated": 1, "ngrams": 4}]
    assert REPEATED(record("attn", repetition=bigrams)) == 25.0


def test_a_record_without_the_counts_has_no_measure():
    for measure in (LOST, ALIKE, SENSES, REPEATED):
        assert measure(record("cache")) is None

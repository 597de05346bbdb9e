"""Means over a test set, and their intervals."""

import numpy as np
import pytest
from helpers.traces import SLOTS, cache_trace, head_trace

from tfmann.decoding.translation import Slots
from tfmann.evaluation import inspection
from tfmann.evaluation.agreement import agreement_statistics
from tfmann.evaluation.cache_statistics import cache_statistics
from tfmann.evaluation.head_statistics import head_statistics
from tfmann.evaluation.inspection import Inspection, bootstrap_intervals


def test_every_statistic_is_described():
    traces = [head_trace("ntm"), head_trace("dnc"), cache_trace()]
    names = {
        key.name
        for trace in traces
        for key in {**head_statistics(trace), **cache_statistics(trace, {"felt"}, np.ones(4))}
    }
    names |= {key.name for key in agreement_statistics(head_trace("ntm"), head_trace("dnc"))}
    assert names <= set(inspection.DESCRIPTIONS)


def test_the_interval_of_a_mean_is_that_of_the_normal_distribution():
    values = np.random.default_rng(0).normal(5.0, 2.0, [400, 1])
    ((low, high),) = bootstrap_intervals(values, np.arange(400))
    error = values.std() / np.sqrt(400)
    np.testing.assert_allclose([low, high], values.mean() + error * np.array([-1.96, 1.96]),
                               atol=0.15 * error)  # fmt: skip


def test_documents_are_drawn_whole():
    # ten documents of twenty equal sentences: twenty times as many sentences say no more
    of_documents = np.random.default_rng(1).normal(size=[10, 1])
    values = np.repeat(of_documents, 20, axis=0)
    ((low, high),) = bootstrap_intervals(values, np.repeat(np.arange(10), 20))
    assert (low, high) == pytest.approx(bootstrap_intervals(of_documents, np.arange(10))[0])
    ((narrow, wide),) = bootstrap_intervals(values, np.arange(200))
    assert wide - narrow < (high - low) / 2


def test_sentences_without_a_value_do_not_count():
    values = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, 7.0]])
    first, second = bootstrap_intervals(values, np.arange(3))
    assert 1.0 <= first[0] < first[1] <= 3.0 and second is None


def inspect_traces(traces, units=None):
    result = Inspection()
    for number, trace in enumerate(traces):
        result.add(trace, number if units is None else units[number])
    return result


def test_a_record_has_means_intervals_and_what_untrained_weights_do():
    traces = [head_trace("ntm"), head_trace("ntm", source=["a", "</s>"], target=["b", "</s>"])]
    untrained = inspect_traces(traces[:1])
    recorded = inspection.record(inspect_traces(traces), untrained)
    assert (recorded["sentences"], recorded["units"], recorded["resamples"]) == (2, 2, 1000)
    by_key = {(e["head"], e["phase"], e["name"]): e for e in recorded["statistics"]}
    values = [head_statistics(trace) for trace in traces]
    for key, entry in by_key.items():
        expected = [statistics[key] for statistics in values if key in statistics]
        assert entry["mean"] == pytest.approx(np.mean(expected), abs=1e-4)
        assert entry["sentences"] == len(expected)
        assert entry["untrained"]["mean"] == pytest.approx(values[0][key], abs=1e-4)
        assert entry["untrained"]["interval"] is None
    assert "recency" not in recorded
    text = inspection.table(recorded)
    assert text.count("\n\n") == 3  # two heads, two phases
    assert "write_head_0, while the source is read\n  entropy of the weights" in text


def test_what_rounds_to_zero_is_shown_without_a_sign():
    entry = {"head": "cache", "phase": "target", "name": "gate", "mean": -0.004}
    entries = [{**entry, "interval": interval} for interval in ([-0.006, 0.004], None)]
    shown = [line.split()[1:] for line in inspection.table({"statistics": entries}).splitlines()]
    assert shown[1:] == [["0.00", "[-0.01,", "0.00]"], ["0.00"]]


def test_the_attention_of_two_systems_is_compared_sentence_by_sentence():
    traces = [head_trace("ntm"), head_trace("ntm", source=["a", "</s>"], target=["b", "</s>"])]
    others = [head_trace("dnc"), head_trace("dnc", source=["a", "</s>"], target=["b", "</s>"])]
    inspected = Inspection()
    for number, (trace, other) in enumerate(zip(traces, others)):
        inspected.add(trace, number, other)
    expected = [agreement_statistics(*pair) for pair in zip(traces, others)]
    means = inspected.means()
    assert len(expected[0]) == 6
    for key in expected[0]:
        assert means[key].mean == pytest.approx((expected[0][key] + expected[1][key]) / 2)
    entries = inspection.record(inspected, None)["statistics"]
    names = [entry["name"] for entry in entries if entry["head"] == "agreement"]
    assert names[:2] == ["overlap", "overlap_by_chance"] and names[3] == "same_position"


def test_a_mean_counts_the_documents_that_have_it():
    alone = cache_trace(Slots([""] * 5, np.full(5, -1)))  # the first of its document
    recorded = inspection.record(
        inspect_traces([alone, cache_trace(), cache_trace(), alone], units=[0, 1, 1, 2]), None
    )
    gate = next(entry for entry in recorded["statistics"] if entry["name"] == "gate")
    assert (recorded["units"], gate["units"], gate["sentences"]) == (3, 1, 2)
    assert gate["interval"] is None


def test_recency_is_a_mean_over_the_steps():
    short = Slots(["a", "", "", "", ""], np.array([0, -1, -1, -1, -1]))
    traces = [cache_trace(seed=1), cache_trace(short, seed=2), cache_trace(SLOTS, seed=3)]
    recorded = inspection.record(inspect_traces(traces), None)
    order = [2, 3, 0]  # of the filled slots
    full = np.concatenate([traces[0]["cache_match"], traces[2]["cache_match"]])[:, order]
    first = np.concatenate([full[:, 0], traces[1]["cache_match"][:, 0]])
    expected = [first.mean(), full[:, 1].mean(), full[:, 2].mean()]
    np.testing.assert_allclose(recorded["recency"][:3], expected, atol=1e-4)
    assert recorded["recency"][3:] == [None, None] and "recency_untrained" not in recorded
    assert recorded["recency_intervals"][3:] == [None, None]


def test_the_recency_of_other_documents_is_a_ratio_of_sums():
    traces = [cache_trace(SLOTS, seed=seed) for seed in range(12)]
    units = [0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 4, 4]
    recorded = inspection.record(inspect_traces(traces, units), inspect_traces(traces[:1]))
    of_units = [[trace["cache_match"][:, 2] for trace, unit in zip(traces, units) if unit == u]
                for u in range(5)]  # fmt: skip
    rng = np.random.default_rng(9)
    means = [np.concatenate([steps for u in rng.integers(0, 5, 5) for steps in of_units[u]]).mean()
             for _ in range(4000)]  # fmt: skip
    low, high = np.percentile(means, (2.5, 97.5))
    assert high - low > 0.02
    np.testing.assert_allclose(
        recorded["recency_intervals"][0], [low, high], atol=0.1 * (high - low)
    )
    assert recorded["recency_untrained_intervals"] == [None] * 5  # of a single sentence


def test_nothing_to_measure_is_an_empty_record():
    assert inspection.record(Inspection(), None)["statistics"] == []

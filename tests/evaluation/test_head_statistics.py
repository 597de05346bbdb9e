"""Statistics of heads: by hand at traces of a few steps, and in a second way at random ones."""

import numpy as np
import pytest
from helpers.traces import SOURCE, head_trace, rounds_trace

from tfmann.evaluation.head_statistics import (
    Key,
    entropy_share,
    forward,
    head_statistics,
    marking,
    successive,
)


def one_hot(positions, size=6):
    return np.eye(size)[positions]


def statistics_of(statistics, head, phase):
    """The statistics of one head in one phase, by name."""
    return {key.name: value for key, value in statistics.items() if key[:2] == (head, phase)}


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        ([0, 1, 2, 3], 1.0),
        ([3, 2, 1, 0], 1.0),
        ([4, 5, 0, 1], 1.0),  # the first slot follows the last
        ([0, 1, 0, 1], 2 / 3),  # two up, one down: only one direction counts
        ([0, 0, 2, 2, 3], 1 / 4),
        ([5, 5], 0.0),
    ],
)
def test_successive(positions, expected):
    assert successive(one_hot(positions)) == pytest.approx(expected)


def test_successive_needs_a_move_and_a_choice():
    assert np.isnan(successive(one_hot([2])))
    assert np.isnan(successive(np.ones([4, 1])))
    withheld = one_hot([1, 4, 2])
    withheld[1] = 0.0  # a write that the DNC withholds is no address
    assert successive(withheld) == 1.0


@pytest.mark.parametrize(
    ("positions", "expected"), [([0, 2, 2, 5], 1.0), ([3, 1, 1, 0], 0.0), ([0, 4, 2, 3], 2 / 3)]
)
def test_forward_counts_moves_only(positions, expected):
    assert forward(np.array(positions)) == pytest.approx(expected)
    assert np.isnan(forward(np.array([2, 2, 2])))


def test_entropy_is_a_share_of_the_uniform_distributions():
    weights = np.array([[0.25] * 4, [1, 0, 0, 0], [0.5, 0.5, 0, 0], [2, 2, 0, 0]])
    np.testing.assert_allclose(entropy_share(weights), [1, 0, 0.5, 0.5])


def test_marking_by_hand():
    # read at slots 2, 4, 1: before step 1 it is {2}, before step 2 {2, 4}
    reads = one_hot([2, 4, 1])
    writes = np.array([[0, 0, 0, 0, 0, 1], [0, 0, 0.75, 0.25, 0, 0], [0.5, 0, 0.25, 0, 0.25, 0]])
    values = marking(writes, [reads])
    assert values["marked"] == pytest.approx((0.75 + 0.5) / 2)
    mean = writes.mean(axis=0)
    assert values["marked_by_chance"] == pytest.approx((mean[2] + (mean[2] + mean[4])) / 2)
    assert values["marking"] == pytest.approx(values["marked"] - values["marked_by_chance"])
    assert marking(writes[:1], [reads[:1]]) == {}
    assert marking(writes, []) == {}


def test_marking_by_chance_is_the_mean_over_all_orders_of_the_writes():
    import itertools

    rng = np.random.default_rng(3)
    writes, reads = rng.dirichlet(np.ones(6), 4), [rng.dirichlet(np.ones(6), 4) for _ in range(2)]
    orders = [
        marking(writes[list(order)], reads)["marked"] for order in itertools.permutations(range(4))
    ]
    assert marking(writes, reads)["marked_by_chance"] == pytest.approx(np.mean(orders))


def paper_trace():
    """A trace as section 5.1 describes it: 4 source words, 5 target words, 6 slots."""
    trace = head_trace("ntm")
    write = [1, 2, 3, 4, 5, 1, 2, 3, 4]  # successive, then where the read head was the step before
    read = [0, 0, 0, 0, 1, 2, 3, 4, 4]
    arrays = trace._arrays
    arrays["write_weights"] = one_hot(write)[:, None]
    arrays["read_weights"] = one_hot(read)[:, None]
    arrays["read_weights"][:4] = 1 / 6
    content = one_hot([[0, 0]] * 4 + [[r, w] for r, w in zip(read[4:], write[4:])])
    arrays["content_weights"] = content
    gates = np.zeros([9, 2, 1])
    gates[4:] = 1.0
    arrays["interpolation_gate"] = gates
    arrays["shift_kernel"] = np.tile([0.0, 0.25, 0.75], [9, 2, 1])
    return trace


def test_the_sentences_of_section_5_1():
    statistics = head_statistics(paper_trace())
    write, read = (
        statistics_of(statistics, f"{kind}_head_0", "source") for kind in ("write", "read")
    )
    assert write["successive"] == 1.0
    assert write["content_gate"] == 0.0 and write["content_agrees"] == 0.0
    assert (write["shift_down"], write["shift_up"]) == (0.0, 0.75)
    assert read["entropy"] == pytest.approx(1.0)
    write, read = (
        statistics_of(statistics, f"{kind}_head_0", "target") for kind in ("write", "read")
    )
    assert write["content_gate"] == write["content_agrees"] == 1.0
    assert write["marked"] == 1.0 and 0 < write["marked_by_chance"] < 1
    assert read["content_gate"] == 1.0 and read["entropy"] == 0.0
    assert read["reads_source_slots"] == read["source_order"] == 1.0


def test_reads_are_ordered_by_source_words_and_not_by_slots():
    trace = paper_trace()
    trace._arrays["write_weights"][:4] = one_hot([4, 3, 2, 1])[:, None]  # written downwards
    target = statistics_of(head_statistics(trace), "read_head_0", "target")
    assert target["source_order"] == 0.0  # slots 1, 2, 3, 4 are source words 3, 2, 1, 0
    trace._arrays["read_weights"][4:] = one_hot([5, 4, 3, 5, 1])[:, None]
    target = statistics_of(head_statistics(trace), "read_head_0", "target")
    assert target["reads_source_slots"] == 3 / 5  # slot 5 was never written in the source phase
    assert target["source_order"] == 1.0


def test_phases_are_apart_and_an_encoder_leaves_the_target_alone():
    with_source = {key.phase for key in head_statistics(head_trace("ntm"))}
    without = head_statistics(head_trace("ntm", reads_source=False))
    assert with_source == {"source", "target"} and {key.phase for key in without} == {"target"}
    assert "source_order" not in {key.name for key in without}


def test_a_dnc_has_its_own_gates_and_modes():
    trace = head_trace("dnc", (2, 1))
    modes = statistics_of(head_statistics(trace), "read_head_1", "target")
    raw = trace["read_modes"][len(SOURCE) :, 1].mean(axis=0)
    np.testing.assert_allclose(
        [modes[f"mode_{name}"] for name in ("backward", "content", "forward")], raw
    )
    assert {"free_gate", "entropy", "successive"} <= set(modes)
    write = statistics_of(head_statistics(trace), "write_head_0", "source")
    assert write["allocation_gate"] == pytest.approx(trace["allocation_gate"][: len(SOURCE)].mean())
    assert "content_gate" not in write


def test_attention_and_rounds_are_measured_over_source_words():
    trace = rounds_trace()
    trace._arrays["alignments"] = one_hot([0, 1, 3, 2, 3], len(SOURCE))
    statistics = head_statistics(trace)
    attention = statistics_of(statistics, "attention", "target")
    assert attention == {
        "entropy": 0.0, "greatest_weight": 1.0, "distinct_positions": 4 / 5, "forward": 3 / 4
    }  # fmt: skip
    last = statistics_of(statistics, "read_head_2", "target")
    assert "forward" in last and "successive" not in last
    assert "marking" in statistics_of(statistics, "write_head_2", "target")


def test_a_sentence_of_one_word_has_no_moves_but_numbers():
    statistics = head_statistics(head_trace("ntm", source=["</s>"], target=["</s>"]))
    names = {key.name for key in statistics}
    assert "entropy" in names and not {"successive", "marking"} & names
    assert all(np.isfinite(value) for value in statistics.values())
    assert Key("read_head_0", "target", "content_gate") in statistics

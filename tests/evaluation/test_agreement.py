"""Agreement of two systems' attention, against loops over steps and positions."""

import numpy as np
import pytest
from helpers.traces import SOURCE, TARGET, cache_trace, head_trace

from tfmann.evaluation import agreement
from tfmann.evaluation.agreement import SourceAttention, source_attention
from tfmann.evaluation.head_statistics import Key

STEPS, LENGTH = 7, 5
NAMES = {
    f"{name}{suffix}"
    for name in ("overlap", "same_position")
    for suffix in ("", "_by_chance", "_even_pace")
}


def attention_trace(seed, source=SOURCE, target=TARGET):
    """A trace with attention to the source."""
    trace = head_trace(reads_source=False, source=source, target=target)
    weights = np.random.default_rng(seed).uniform(size=(len(target), len(source)))
    trace._arrays["alignments"] = weights / weights.sum(axis=1, keepdims=True)
    return trace


def random_attention(seed, steps=STEPS, length=LENGTH):
    weights = np.random.default_rng(seed).dirichlet(np.ones(length), steps)
    return SourceAttention(weights, weights.argmax(axis=1))


def common(a, b):
    return sum(min(x, y) for x, y in zip(a, b))


def loops(attention, other):
    """The definitions, one step and one position at a time."""
    steps, length = other.weights.shape
    overlap = same = overlap_chance = same_chance = overlap_pace = same_pace = 0.0
    for t in range(steps):
        overlap += common(attention.weights[t], other.weights[t]) / steps
        same += (attention.positions[t] == other.positions[t] >= 0) / steps
        even = int(t * length / steps)
        one_hot = [float(s == even) for s in range(length)]
        overlap_pace += common(one_hot, other.weights[t]) / steps
        same_pace += (even == other.positions[t]) / steps
        for u in range(steps):
            overlap_chance += common(attention.weights[u], other.weights[t]) / steps**2
            same_chance += (attention.positions[u] == other.positions[t] >= 0) / steps**2
    return {
        "overlap": overlap, "overlap_by_chance": overlap_chance, "overlap_even_pace": overlap_pace,
        "same_position": same, "same_position_by_chance": same_chance,
        "same_position_even_pace": same_pace,
    }  # fmt: skip


@pytest.mark.parametrize(("steps", "length"), [(7, 5), (3, 8), (1, 1), (6, 6)])
def test_it_is_what_loops_compute(steps, length):
    attention, other = (random_attention(seed, steps, length) for seed in (1, 2))
    attention.weights[0] *= 0.5  # the rest is read elsewhere
    attention.positions[-1] = other.positions[0] = agreement.NOWHERE
    measured = agreement.agreement(attention, other)
    assert measured == pytest.approx(loops(attention, other)) and set(measured) == NAMES


def test_known_cases():
    diagonal = SourceAttention(np.eye(6), np.arange(6))
    measured = agreement.agreement(diagonal, diagonal)
    assert measured == pytest.approx({
        "overlap": 1, "overlap_by_chance": 1 / 6, "overlap_even_pace": 1,
        "same_position": 1, "same_position_by_chance": 1 / 6, "same_position_even_pace": 1,
    })  # fmt: skip
    stays = SourceAttention(np.eye(6)[[0] * 6], np.zeros(6, int))  # always at the first word
    measured = agreement.agreement(stays, stays)
    assert measured["same_position"] == measured["same_position_by_chance"] == 1
    assert measured["same_position_even_pace"] == pytest.approx(1 / 6)
    nowhere = SourceAttention(np.zeros([6, 6]), np.full(6, agreement.NOWHERE))
    assert set(agreement.agreement(nowhere, nowhere).values()) == {0.0}


def test_random_order_is_the_mean_over_shuffled_steps():
    attention, other = random_attention(1, 30, 8), random_attention(2, 30, 8)
    measured = agreement.agreement(attention, other)
    rng = np.random.default_rng(0)
    shuffled = []
    for _ in range(2000):
        order = rng.permutation(30)
        moved = SourceAttention(attention.weights[order], attention.positions[order])
        shuffled.append(agreement.agreement(moved, other))
    for name in ("overlap", "same_position"):
        values = [values[name] for values in shuffled]
        error = np.std(values) / np.sqrt(len(values))
        assert np.mean(values) == pytest.approx(measured[f"{name}_by_chance"], abs=4 * error)


def test_a_slot_stands_for_the_word_that_was_last_written_to_it():
    trace = head_trace("ntm", heads=(2, 1), slots=4)
    writes, reads = trace._arrays["write_weights"], trace._arrays["read_weights"]
    slots = [1, 0, 1, 0]  # so that the words 2 and 3 are left, at 1 and 0
    writes[: len(SOURCE), 0] = np.eye(4)[slots]
    found = source_attention(trace)
    assert found.weights.shape == (len(TARGET), len(SOURCE))
    for step in range(len(TARGET)):
        mean = reads[len(SOURCE) + step].mean(axis=0)
        np.testing.assert_allclose(found.weights[step], [0, 0, mean[1], mean[0]])
        expected = {0: 3, 1: 2}.get(int(mean.argmax()), agreement.NOWHERE)
        assert found.positions[step] == expected
    assert agreement.NOWHERE in found.positions and (found.positions >= 0).any()


def test_attention_over_an_encoder_is_taken_as_it_is():
    trace = attention_trace(3)
    found = source_attention(trace)
    np.testing.assert_array_equal(found.weights, trace["alignments"])
    np.testing.assert_array_equal(found.positions, trace["alignments"].argmax(axis=1))
    assert source_attention(cache_trace()) is None
    assert source_attention(head_trace(reads_source=False)) is None
    unwritten = head_trace()  # of a cell that does not show where it writes
    del unwritten._arrays["write_weights"]
    assert source_attention(unwritten) is None


def test_two_traces_of_a_pair():
    trace, other = attention_trace(1), attention_trace(2)
    statistics = agreement.agreement_statistics(trace, other)
    expected = loops(source_attention(trace), source_attention(other))
    assert statistics == pytest.approx(
        {Key("agreement", "target", name): value for name, value in expected.items()}
    )


def test_other_tokens_and_no_attention_are_refused():
    trace = attention_trace(1)
    unknown = attention_trace(2, ["<unk>", *SOURCE[1:]], ["where", "<unk>", *TARGET[2:]])
    assert agreement.agreement_statistics(trace, unknown)  # the same words to another vocabulary
    for source, target in ((SOURCE[1:], TARGET), (SOURCE, ["when", *TARGET[1:]])):
        with pytest.raises(ValueError, match="expected models of the same tokens; one sees '"):
            agreement.agreement_statistics(trace, attention_trace(2, source, target))
    without = head_trace(reads_source=False)
    with pytest.raises(ValueError, match="the other model has no attention to source words"):
        agreement.agreement_statistics(trace, without)
    with pytest.raises(ValueError, match="this model has no attention to source words"):
        agreement.agreement_statistics(without, trace)

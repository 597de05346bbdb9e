"""The learning tasks of benchmarks/tasks: the data by hand, the models by their oracles."""

import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.memory_cells import run_oracle
from helpers.task_sizes import TINY
from oracles import recurrent

_ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(_ROOT))  # the benchmarks are not installed

from benchmarks.tasks import generate, model, train  # noqa: E402
from tfmann.config import HParams  # noqa: E402


class Given:
    """A stream of random numbers that are not random."""

    def __init__(self, *values):
        self.values = list(values)

    def integers(self, low, high, shape):
        value = np.array(self.values.pop(0))
        assert value.shape == (shape if isinstance(shape, tuple) else (shape,))
        assert np.all((value >= low) & (value < high))
        return value


def rows(batch, row):
    """One row's inputs, targets and mask, as lists."""
    return tuple(part[:, row].tolist() for part in batch)


# --- the data, by hand --------------------------------------------------------------------------


def test_copy_by_hand():
    vectors = [[[1, 0, 1], [0, 0, 0]], [[0, 1, 1], [1, 0, 0]]]  # [length 2, rows 2, bits 3]
    batch = generate.copy(Given(vectors), rows=2, length=2, bits=3)
    inputs, targets, mask = rows(batch, 0)
    assert inputs == [[1, 0, 1, 0], [0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert targets == [[0, 0, 0], [0, 0, 0], [0, 0, 0], [1, 0, 1], [0, 1, 1]]
    assert mask == [0, 0, 0, 1, 1]
    assert rows(batch, 1)[1][3:] == [[0, 0, 0], [1, 0, 0]]


def test_repeat_copy_by_hand():
    vectors = [[[1, 0]], [[0, 1]]]
    batch = generate.repeat_copy(Given(vectors), rows=1, length=2, repeats=2, bits=2)
    inputs, targets, mask = rows(batch, 0)
    number = (2 - 5.5) / np.sqrt(8.25)
    assert inputs[:2] == [[1, 0, 0, 0], [0, 1, 0, 0]]
    assert inputs[2] == pytest.approx([0, 0, 1, number])
    assert inputs[3:] == [[0, 0, 0, 0]] * 5
    assert targets == [[0, 0, 0]] * 3 + [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert mask == [0, 0, 0, 1, 1, 1, 1, 1]


def test_the_number_of_repeats_has_mean_0_and_variance_1():
    numbers = [generate.normalised(repeats) for repeats in range(1, 11)]
    assert np.mean(numbers) == pytest.approx(0)
    assert np.var(numbers) == pytest.approx(1)


def test_associative_recall_by_hand():
    a, b, c = [[1, 0], [0, 0], [1, 1]], [[0, 1], [0, 1], [1, 0]], [[1, 1], [0, 1], [0, 0]]
    unused = [[0, 0]] * 3
    vectors = np.array([[a, unused], [b, unused], [c, a]]).transpose(0, 2, 1, 3)  # [3, 3, rows, 2]
    batch = generate.associative_recall(Given(vectors, [0, 1]), rows=2, items=3, bits=2)
    blank = [0, 0]
    inputs, targets, mask = rows(batch, 0)
    items_shown = [[*blank, 1, 0]]
    for item in (a, b, c):
        items_shown += [[*vector, 0, 0] for vector in item] + [[*blank, 1, 0]]
    query = [[*blank, 0, 1], *([*vector, 0, 0] for vector in a), [*blank, 0, 1]]
    assert inputs == items_shown[:-1] + query + [[0, 0, 0, 0]] * 3
    assert targets == [blank] * 17 + b
    assert mask == [0] * 17 + [1] * 3
    inputs, targets, _ = rows(batch, 1)
    assert inputs[13:16] == [[0, 0, 0, 0]] * 3  # the second item is asked about
    assert targets[-3:] == a


@pytest.mark.parametrize("task", generate.TASKS.values(), ids=lambda task: task.name)
def test_every_size_has_the_declared_widths_and_its_answer_at_the_end(task):
    sizes = [size for sweep in task.sweeps for size in sweep.sizes]
    for size in sizes:
        batch = task.test(size, rows=2)
        steps = len(batch.inputs)
        assert batch.inputs.shape == (steps, 2, task.input_width)
        assert batch.targets.shape == (steps, 2, task.output_width)
        assert all(part.dtype == np.float32 for part in batch)
        answer_steps = int(batch.mask[:, 0].sum())
        assert np.all(batch.mask[-answer_steps:] == 1) and np.all(batch.mask[:-answer_steps] == 0)
        assert np.all(batch.targets[:-answer_steps] == 0)
        assert np.all(
            batch.inputs[-answer_steps:] == 0
        )  # nothing is shown while answers are expected
    for sweep in task.sweeps:
        numbers = [size[sweep.number] for size in sweep.sizes]
        assert sweep.trained == task.ranges[sweep.number][1]
        assert sweep.trained in numbers and max(numbers) >= 2 * sweep.trained
        assert numbers == sorted(numbers)


@pytest.mark.parametrize(
    "name,steps", [("copy", lambda n: 2 * n + 1), ("associative_recall", lambda n: 4 * n + 8)]
)
def test_training_draws_all_trained_sizes_and_no_other(name, steps):
    task = generate.TASKS[name]
    ((low, high),) = task.ranges
    expected = {steps(size) for size in range(low, high + 1)}
    assert {len(task.training(1, update, 1).inputs) for update in range(200)} == expected
    assert {len(batch.inputs) for batch in task.validation(rows=1)} == expected


def test_batches_follow_from_seed_and_update():
    task = generate.TASKS["repeat_copy"]
    repeated = [task.training(3, 7, 4), task.training(3, 7, 4)]
    assert all(np.array_equal(*pair) for pair in zip(*repeated))
    bits = [task.training(seed, update, 40).inputs[0, :, :8] for seed, update in
            [(3, 7), (3, 8), (4, 7)]]  # fmt: skip
    assert not np.array_equal(bits[0], bits[1]) and not np.array_equal(bits[0], bits[2])
    assert 0.4 < np.mean(bits) < 0.6
    for first, second in zip(task.validation(), task.validation()):
        assert np.array_equal(first.inputs, second.inputs)


def test_wrong_bits_by_hand():
    targets = np.zeros([3, 2, 2], np.float32)
    targets[1:, 0] = [[1, 0], [1, 1]]
    mask = np.array([[0, 0], [1, 1], [1, 1]], np.float32)
    batch = generate.Batch(np.zeros([3, 2, 1], np.float32), targets, mask)
    logits = np.full([3, 2, 2], -1.0)
    assert generate.wrong_bits(logits, batch) == 3 / 2  # three ones missed, in two sequences
    logits[0] = 9.0  # not part of the answer
    assert generate.wrong_bits(logits, batch) == 3 / 2
    logits[2, 0] = [0.0, 5.0]  # an output of exactly a half is a 1
    assert generate.wrong_bits(logits, batch) == 1 / 2
    logits[1, 1, 0] = 0.1
    assert generate.wrong_bits(logits, batch) == 2 / 2


def test_guessing_costs_half_the_bits():
    batch = generate.TASKS["copy"].test((20,), rows=500)
    logits = np.random.default_rng(0).normal(size=batch.targets.shape)
    assert generate.wrong_bits(logits, batch) == pytest.approx(80, abs=1)


# --- the model ----------------------------------------------------------------------------------


def hparams(cell, task):
    base, _ = model.VARIANTS.get(cell, (cell, {}))
    settings = train.configuration(task.name, cell, 5, **TINY[base])["settings"]
    changes = {"init_op": "uniform", "init_weight": 0.7, "learning_rate": 0.01}
    return HParams(**{**settings, **changes})


def outputs_of(cell, h, weights, inputs):
    """Readouts `[T, U]` of one row, by the oracles."""
    if cell != model.CONTROL:
        return run_oracle(h, weights, inputs)["outputs"]
    states, outputs = [recurrent.zero_state("lstm", layer) for layer in weights["layers"]], []
    for x in inputs:
        h, states = recurrent.stack_step("lstm", weights["layers"], x, states)
        outputs.append(h)
    return np.array(outputs)


@pytest.mark.quick(*model.CELLS, "dnc-content-only")
@pytest.mark.parametrize("cell", [*model.CELLS, *model.VARIANTS])
def test_forward_equals_its_oracle(cell):
    task = generate.TASKS["associative_recall"]
    learner = model.TrainStep(hparams(cell, task), cell, task)
    stream = np.random.default_rng(1)
    for variable in learner.variables:
        if "bias" in variable.name or "initial_memory" in variable.name:
            variable.assign_add(stream.normal(scale=0.4, size=variable.shape))
    batch = task.test((3,), rows=4)
    loss, logits = learner.evaluate(*batch)
    weights = small_models.oracle_weights(learner.model)
    arrays = small_models.arrays(learner.model)
    total = 0.0
    for row in range(4):
        readout = outputs_of(
            cell, learner.hparams, weights, batch.inputs[:, row].astype(np.float64)
        )
        expected = readout @ arrays["projection_kernel"] + arrays["projection_bias"]
        np.testing.assert_allclose(logits[:, row], expected, atol=1e-5)
        for time_step in range(len(expected)):
            for bit in range(task.output_width):
                share = 1 / (1 + np.exp(-expected[time_step, bit]))
                right = share if batch.targets[time_step, row, bit] else 1 - share
                total -= batch.mask[time_step, row] * np.log(right)
    assert float(loss) == pytest.approx(total / 4, rel=1e-4)


@pytest.mark.parametrize("cell", model.CELLS)
def test_updates_lower_the_loss(cell):
    task = generate.TASKS["copy"]
    learner = model.TrainStep(hparams(cell, task), cell, task)
    batch = task.test((2,), rows=3)
    losses = [float(learner.update(*batch)) for _ in range(30)]
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.quick("lstm")
@pytest.mark.parametrize("cell", model.CELLS)
def test_an_update_compiled_by_xla_is_the_same_update(cell):
    task = generate.TASKS["copy"]
    batch = [tf.constant(part) for part in task.test((2,), rows=3)]
    ends = []
    for jit_compile in (False, True):
        learner = model.TrainStep(hparams(cell, task), cell, task, jit_compile)
        losses = [float(learner.update(*batch)) for _ in range(3)]
        ends.append((losses, [v.numpy() for v in learner.variables]))
    (losses, weights), (compiled_losses, compiled_weights) = ends
    assert losses[0] != losses[2]
    np.testing.assert_allclose(compiled_losses, losses, rtol=1e-5)
    for compiled, plain in zip(compiled_weights, weights):
        np.testing.assert_allclose(compiled, plain, atol=2e-5)


def test_the_default_cells_have_about_as_many_weights():
    task, counts = generate.TASKS["copy"], {}
    for cell in model.CELLS:
        settings = train.configuration("copy", cell, 1)["settings"]
        built = model.TaskModel(HParams(**settings), cell, task.output_width)
        counts[cell] = sum(int(np.prod(v.shape)) for v in built.trainable_variables)
    # NTM: LSTM (9 + 20 + 100 + 1) * 400, heads 101 * 92, start 128 * 20 + 2 * 128 + 20,
    # output 121 * 100, projection 101 * 8
    assert counts["ntm"] == 52_000 + 9_292 + 2_836 + 12_100 + 808
    assert max(counts.values()) < 1.05 * min(counts.values())

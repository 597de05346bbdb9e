"""The compiled update: replicas make the update of one device; what is not finite is noticed."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from helpers import replicas, small_models
from helpers.updates import ATOL, BATCHES, CASES, poison

from tfmann.data.batching import shard_batch
from tfmann.errors import UsageError
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.training import checkpoint
from tfmann.training.objective import Loss
from tfmann.training.train_step import TrainStep, require_trainable

WITH_DROPOUT = {"dropout": 0.5, "optimizer": "adam"}


def learner(variant="luong", **changes):
    settings = {"num_layers": 1, "encoder_type": "uni", "init_weight": 0.4}
    h = small_models.hparams(variant, **{**settings, **changes})
    return TrainStep(h, small_models.SOURCE_SIZE, small_models.TARGET_SIZE)


def test_a_name_that_two_weights_have_is_refused_before_the_first_update(monkeypatch):
    matrix = VariableFactory.matrix
    monkeypatch.setattr(
        VariableFactory,
        "matrix",
        lambda self, name, *args, **more: matrix(self, "same", *args, **more),
    )
    with pytest.raises(ValueError, match="two weights have the same name: .*/cell/same"):
        learner("rnnsearch")


def train(train_step):
    """Makes an update a batch; returns the weights by name, and the statistics of each update."""
    rate = 0.01 if train_step.hparams.optimizer == "adam" else 0.5
    statistics = []
    for step, lengths in enumerate(BATCHES):
        update = train_step.update(small_models.batch(lengths, seed=step), step, rate)
        statistics.append([float(value) for value in update])
    return train_step.weight_arrays(), np.array(statistics)


def twins():
    """A batch of the same pair twice."""
    batch = small_models.batch([(4, 3)] * 2)
    for part in (batch.source, batch.target_in, batch.target_out):
        part[1] = part[0]
    return batch


def loss_of_one(rate):
    """The loss of one of the twins with dropout, in the first part of the first replica."""
    alone = learner(dropout=rate).update(shard_batch(twins(), 2)[0], 3, 0.0)
    return float(alone.cross_entropy)


def save(folder, name, mirrored):
    """Saves what two replicas have, which must be the same."""
    weights = mirrored.weight_arrays()
    for variable in mirrored.variables:
        first, second = (part.numpy() for part in variable.values)
        assert np.array_equal(first, second), f"replicas differ in {variable.name}"
    assert int(mirrored.bad_step.numpy()) == -1
    np.savez(Path(folder, f"{name}.npz"), **weights)
    checkpoint.write(str(Path(folder, name)), weights, mirrored.optimizer_arrays(), {})


def main(folder, cases=tuple(CASES)):
    """Two replicas (`replicas.run_main`)."""
    replicas.two_cpus()
    for name in cases:
        mirrored = learner(distribution="mirrored", **CASES[name])
        assert mirrored.strategy.num_replicas_in_sync == 2
        np.save(Path(folder, f"{name}.statistics.npy"), train(mirrored)[1])
        save(folder, name, mirrored)
    both = learner(distribution="mirrored", **WITH_DROPOUT)
    update = both.update(twins(), 3, 0.01)
    assert float(update.cross_entropy) != pytest.approx(2 * loss_of_one(0.5), rel=1e-3), (
        "equal masks"
    )
    train(both)
    save(folder, "dropout", both)
    poison(both)
    both.update(small_models.batch(BATCHES[0]), 8, 0.1)
    assert int(both.bad_step.numpy()) == 8, "a replica's infinity went unnoticed"
    print("done")


@pytest.fixture(scope="module")
def mirrored(tmp_path_factory):
    """The folder with what two replicas made."""
    folder = tmp_path_factory.mktemp("mirrored")
    replicas.run_main(__file__, folder)
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize("case", list(CASES))
def test_two_replicas_make_the_updates_of_one_device(case, mirrored):
    train_step = learner(**CASES[case])
    start = train_step.weight_arrays()
    weights, statistics = train(train_step)
    np.testing.assert_allclose(np.load(mirrored / f"{case}.statistics.npy"), statistics, rtol=1e-5)
    with np.load(mirrored / f"{case}.npz", allow_pickle=False) as arrays:
        assert sorted(arrays.files) == sorted(weights)
        for name, value in weights.items():
            assert np.abs(value - start[name]).max() > 1e-5, f"{name} did not move"
            np.testing.assert_allclose(arrays[name], value, atol=ATOL[case], err_msg=name)


@pytest.mark.quick("luong-sgd-sentences")
@pytest.mark.parametrize("case", list(CASES))
def test_accumulated_gradients_make_the_update_of_the_whole_batch(case):
    """In three parts of 5, 1 and 4 rows, so that some parts are empty."""
    undivided, statistics = train(learner(**CASES[case], max_gradient_norm=0.5))
    parts, statistics_of_parts = train(learner(**CASES[case], max_gradient_norm=0.5,
                                         gradient_accumulation=3))  # fmt: skip
    np.testing.assert_allclose(statistics_of_parts, statistics, rtol=1e-5)
    for name, value in undivided.items():
        atol = 5e-5 if "adam" in case else 1e-6  # as between replicas, below
        np.testing.assert_allclose(parts[name], value, atol=atol, err_msg=name)


@pytest.mark.thorough
def test_parts_of_a_batch_draw_their_own_dropout():
    for rate, alike in ((0.0, True), (0.5, False)):
        of_two_parts = learner(dropout=rate, gradient_accumulation=2).update(twins(), 3, 0.0)
        doubled = pytest.approx(2 * loss_of_one(rate), rel=1e-5)
        assert (float(of_two_parts.cross_entropy) == doubled) == alike


def test_each_part_of_a_batch_has_the_masks_of_a_scope_of_its_own(monkeypatch):
    """What `test_parts_of_a_batch_draw_their_own_dropout` shows of whole updates."""
    drawn = []

    def draw(model, batch, masks, dtype, document):
        del model, batch, dtype, document
        drawn.append(float(masks.uniform("input", [])))
        return Loss(tf.constant(0.0), tf.constant(0.0), tf.constant(0))

    monkeypatch.setattr("tfmann.training.train_step.sum_loss", draw)
    masks = DropoutMasks(tf.constant([1, 2]))
    learner()._gradients((((), ()),) * 3, masks, tf.constant(1.0))
    assert drawn[0] == float(masks.uniform("input", []))
    assert len(set(drawn)) == 3


def test_an_update_opens_no_file(monkeypatch):
    """Settings and cells are looked at once, before the first update."""
    import io

    train_step, batch = learner("ntm"), small_models.batch(BATCHES[0])
    train_step.update(batch, 0, 0.1)

    def refuse(*arguments, **options):
        raise AssertionError(f"an update opens {arguments[0]}")

    for module, name in ((io, "open"), (Path, "read_text"), (Path, "glob")):
        monkeypatch.setattr(module, name, refuse)
    train_step.update(batch, 1, 0.1)


def test_one_device_resumes_from_a_checkpoint_of_two(tmp_path):
    replicas.run_main(__file__, tmp_path, [])
    train_step = learner(**WITH_DROPOUT)
    train_step.restore(str(tmp_path / "dropout"))
    with np.load(tmp_path / "dropout.npz", allow_pickle=False) as arrays:
        for name, value in train_step.weight_arrays().items():
            assert np.array_equal(arrays[name], value), name
    slots = train_step.optimizer_arrays()
    assert len(slots) == 2 * len(train_step.variables) + 1
    assert [int(v) for n, v in slots.items() if n.endswith("iter")] == [1 + len(BATCHES)]


def test_rows_are_dealt_once_each():
    batch = small_models.batch(BATCHES[0])
    parts = shard_batch(batch, 3)
    assert sorted(np.concatenate([part.sentences for part in parts])) == list(range(5))
    assert [len(part.source) for part in parts] == [2, 2, 1]
    assert sum(part.words for part in parts) == batch.words


def test_the_first_step_that_is_not_finite_is_kept():
    train_step = learner(max_gradient_norm=5.0)
    batch = small_models.batch(BATCHES[0])
    update = train_step.update(batch, 3, 0.1)
    assert int(train_step.bad_step.numpy()) == -1
    assert float(update.cross_entropy) > 0
    poison(train_step)
    for step in (4, 5):
        update = train_step.update(batch, step, 0.1)
        assert not np.isfinite(float(update.gradient_norm))
    assert int(train_step.bad_step.numpy()) == 4


def test_an_infinite_gradient_of_a_finite_loss_is_noticed():
    train_step = learner()
    real = train_step.model.cell.readout

    @tf.custom_gradient
    def broken(values):
        return tf.identity(values), lambda gradient: gradient * np.inf

    train_step.model.cell.readout = lambda *args: broken(real(*args))
    update = train_step.update(small_models.batch(BATCHES[0]), 7, 0.1)
    assert np.isfinite(float(update.cross_entropy))
    assert int(train_step.bad_step.numpy()) == 7


def test_weights_follow_from_the_seed_and_dropout_from_the_step():
    settings = {"dropout": 0.3, "readout_dropout": 0.2, "optimizer": "adam"}
    first, second = learner(**settings), learner(**settings)
    weights, statistics = train(first)
    second_weights, second_statistics = train(second)
    assert all(np.array_equal(value, second_weights[name]) for name, value in weights.items())
    assert np.array_equal(statistics, second_statistics)
    batch = small_models.batch(BATCHES[0])
    losses = [float(second.update(batch, step, 0.0).cross_entropy) for step in (0, 1, 0)]
    assert losses[0] == losses[2] != losses[1]


@pytest.mark.bfloat16
def test_bfloat16_makes_nearly_the_same_updates():
    (exact, statistics), (rounded, rounded_statistics) = (
        train(learner(precision=precision)) for precision in ("float32", "mixed_bfloat16")
    )
    assert not np.array_equal(statistics, rounded_statistics)
    np.testing.assert_allclose(rounded_statistics[:, 0], statistics[:, 0], rtol=0.02)
    for name, value in exact.items():
        error = np.linalg.norm(rounded[name] - value)
        assert error < 0.02 * np.linalg.norm(value) + 1e-3, name


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gradient_accumulation": 3, "batch_size": 2}, "=3 cuts a batch into more parts than"),
        ({"avg_ckpts": True, "num_keep_ckpts": 1}, "avg_ckpts needs several checkpoints"),
        ({"label_smoothing": 1.0}, "label_smoothing=1 leaves nothing to the words"),
        ({"adadelta_rho": 1.0}, "adadelta_rho=1 forgets nothing"),
        ({"adadelta_epsilon": 0.0}, "Keras would take 1e-7"),
    ],
)
def test_values_that_do_nothing_are_refused_in_training_alone(changes, words):
    settings = small_models.hparams("luong", **changes)  # those of a trained run may be read
    with pytest.raises(UsageError, match=words):
        require_trainable(settings)

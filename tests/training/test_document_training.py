"""Training on documents: the cache passes from sentence to sentence, and a run resumes exactly."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from helpers import command_line, replicas, small_models, tiny_runs
from helpers.document_corpus import CACHE, SIZES, corpus

from tfmann import nmt
from tfmann.data.batching import Position
from tfmann.data.document_batches import DocumentBatches, document_evaluation_batches
from tfmann.models import document_cache
from tfmann.synthetic import Style, write_corpus
from tfmann.training import checkpoint, checkpoint_series, named_variables, trainer
from tfmann.training.objective import sum_loss
from tfmann.training.perplexity import Perplexity
from tfmann.training.train_state import TrainState
from tfmann.training.train_step import TrainStep

GATES = "cell/gate_*"
RUN = {**CACHE, "num_train_steps": 12, "steps_per_checkpoint": 4, "steps_per_external_eval": 12}


def learner(**changes):
    settings = {**CACHE, "batch_size": 2, "optimizer": "adam", "learning_rate": 0.01}
    h = small_models.hparams("rnnsearch", **{**settings, **changes})
    return TrainStep(h, small_models.SOURCE_SIZE, small_models.TARGET_SIZE)


def train(train_step, updates, position=Position(), rate=0.01):  # noqa: B008 (immutable)
    """Makes updates; returns the statistics of each, and the position after."""
    stream = DocumentBatches(corpus(), train_step.hparams).batches(position)
    statistics = []
    for step in range(updates):
        batch, position = next(stream)
        statistics.append([float(value) for value in train_step.update(batch, step, rate)])
    return np.array(statistics), position


def test_an_update_reads_what_the_sentences_before_wrote():
    train_step = learner(trainable_parameters=GATES, batch_size=1)
    statistics, _ = train(train_step, sum(SIZES), rate=0.0)
    model, cache, expected = train_step.model, None, []
    stream = DocumentBatches(corpus(), train_step.hparams).batches(Position())
    for _ in range(sum(SIZES)):
        batch, _ = next(stream)
        if batch.starts[0]:
            cache = document_cache.empty(model, 1)
        loss = sum_loss(model, batch[:5], None, tf.float32, cache)
        cache = loss.cache
        expected.append(float(loss.cross_entropy))
    np.testing.assert_allclose(statistics[:, 0], expected, rtol=1e-4)
    assert int((cache.written >= 0).numpy().sum()) == 5  # all slots are filled by then
    assert train_step.model.count_parameters() > sum(
        v.shape.num_elements() for v in train_step.trained
    )


def test_dev_is_measured_with_the_cache_carried():
    perplexity = Perplexity(learner().model)
    losses = [
        perplexity.measure(document_evaluation_batches(corpus(), rows, True))[0]
        for rows in (1, 3, 9)
    ]
    np.testing.assert_allclose(losses, losses[0], rtol=1e-6)
    single = corpus(np.arange(sum(SIZES)))  # each sentence by itself
    without_cache, _ = perplexity.measure(document_evaluation_batches(single, 3, True))
    assert abs(without_cache - losses[0]) > 1e-4


def test_only_the_selected_parameters_change():
    train_step = learner(trainable_parameters=GATES)
    before = train_step.weight_arrays()
    train(train_step, 5)
    for name, value in train_step.weight_arrays().items():
        moved = not np.array_equal(value, before[name])
        assert moved == ("gate_" in name), name
    names = [name for name in train_step.optimizer_arrays() if "gate_" not in name]
    assert all("iter" in name for name in names), names


def test_a_run_resumes_with_the_caches_of_its_documents(tmp_path):
    uninterrupted = learner()
    _, position = train(uninterrupted, 5)
    trainer.save(uninterrupted, TrainState(step=5, position=position), str(tmp_path))
    second = learner()
    second.restore(checkpoint_series.step_folder(str(tmp_path), 5))
    for train_step in (uninterrupted, second):
        stream = DocumentBatches(corpus(), train_step.hparams).batches(position)
        for step in range(5, 9):
            train_step.update(next(stream)[0], step, 0.01)
    for name, value in second.weight_arrays().items():
        assert np.array_equal(value, uninterrupted.weight_arrays()[name]), name
    forgetful = learner()
    folder = checkpoint_series.step_folder(str(tmp_path), 5)
    named_variables.assign(forgetful.variables, checkpoint.read_arrays(folder), folder)
    assert not forgetful.caches and second.caches


@pytest.mark.parametrize("fusion", ["deep", "shallow"])
def test_rows_without_words_change_nothing(fusion):
    """All rows of a replica, at the end of an epoch; the other replicas have words."""
    train_step = learner(cache_fusion=fusion, optimizer="sgd")
    before = train_step.weight_arrays()
    batch, _ = next(DocumentBatches(corpus(), train_step.hparams).batches(Position()))
    idle = batch._replace(target_length=np.zeros_like(batch.target_length))
    update = train_step.update(idle, 0, 1.0)
    assert float(update.cross_entropy) == 0 and float(update.gradient_norm) == 0
    for name, value in train_step.weight_arrays().items():
        assert np.array_equal(value, before[name]), name


def main(folder):
    """Two replicas (`replicas.run_main`)."""
    replicas.two_cpus()
    for rows in (3, 1):  # of one row a replica has nothing
        train_step = learner(distribution="mirrored", batch_size=rows, optimizer="sgd")
        assert train_step.strategy.num_replicas_in_sync == 2
        statistics, _ = train(train_step, 6)
        np.savez(Path(folder, f"{rows}.npz"), statistics=statistics, **train_step.weight_arrays())
        np.savez(Path(folder, f"{rows}.kept.npz"), **train_step.cache_arrays())
    print("done")


@pytest.mark.thorough
def test_two_replicas_keep_what_one_device_keeps(tmp_path):
    replicas.run_main(__file__, tmp_path)
    for rows in (3, 1):
        train_step = learner(batch_size=rows, optimizer="sgd")
        statistics, _ = train(train_step, 6)
        with np.load(tmp_path / f"{rows}.npz") as arrays:
            np.testing.assert_allclose(arrays["statistics"], statistics, rtol=1e-4)
            for name, value in train_step.weight_arrays().items():
                np.testing.assert_allclose(arrays[name], value, atol=1e-5, err_msg=name)
        with np.load(tmp_path / f"{rows}.kept.npz") as arrays:
            for name, value in train_step.cache_arrays().items():
                np.testing.assert_allclose(arrays[name][:rows], value, atol=1e-5, err_msg=name)


# --- by the command line ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents")
    write_corpus(folder, 120, 12, 12, seed=3, style=Style(document_tense=True))
    return folder


def train_here(data, out, **settings):
    return nmt.main(tiny_runs.flags(data, out, **settings))


@pytest.mark.thorough
def test_stage_two_starts_from_stage_one(data, tmp_path, capsys):
    first, second = tmp_path / "one", tmp_path / "two"
    base = {"cell": "rnnsearch", "unit_type": "gru", "projection_bias": True, "num_train_steps": 4}
    assert train_here(data, first, **base) == 0
    start = {"init_checkpoint": first / "best_bleu", "trainable_parameters": GATES}
    start["cache_size"] = 2  # full soon, for a model that predicts `the the the`
    assert train_here(data, second, **{**RUN, **start}) == 0
    out = capsys.readouterr().out
    assert "new: model/cell/gate_" in out and "side by side" in out
    before, after = (checkpoint.read_arrays(str(p / "best_bleu")) for p in (first, second))
    unchanged = [name for name in before if np.array_equal(after[name], before[name])]
    assert unchanged == list(before)
    events = b"".join(path.read_bytes() for path in (second / "train_log").iterdir())
    assert b"cache/recency" in events  # drawn where the caches of dev have filled
    new = sorted(name.rsplit("/")[-1] for name in after if name not in before)
    assert new == ["gate_context_kernel", "gate_retrieved_kernel", "gate_state_kernel"]


def test_weights_that_stay_as_they_were_drawn_are_named(data, tmp_path, capsys, monkeypatch):
    settings = {"cell": "summary", "unit_type": "gru", "num_train_steps": 1}
    settings["trainable_parameters"] = "cell/*"
    assert train_here(data, tmp_path / "run", **settings) == 0
    remark = "trainable_parameters='cell/*' without init_checkpoint: all other weights stay random"
    out = capsys.readouterr().out
    assert remark in out and "best, test: BLEU" in out

    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(TrainStep, "update", stop)
    settings["num_train_steps"] = 2
    assert train_here(data, tmp_path / "run", **settings) == 130
    assert "stay random" not in capsys.readouterr().out  # of a run that continues


def test_a_run_that_reads_other_documents_forgets_those_before(tmp_path, monkeypatch):
    """Other text, or the same in another order; with the same text elsewhere it does not."""
    for name, seed in (("here", 3), ("there", 3), ("other", 4)):
        write_corpus(tmp_path / name, 60, 6, 6, seed=seed, style=Style(document_tense=True))

    class Killed(BaseException):
        pass

    def update_until_fourth(self, batch, step, *args):
        if step == 3:
            assert not batch.starts.all()  # a document is in progress
            raise Killed(bool(self.caches))
        return update(self, batch, step, *args)

    update = TrainStep.update
    monkeypatch.setattr(TrainStep, "update", update_until_fourth)
    settings = {**RUN, "batch_size": 2, "steps_per_checkpoint": 3}

    def has_caches(name, **changes):
        with pytest.raises(Killed) as killed:
            train_here(tmp_path / name, tmp_path / "run", **settings, **changes)
        return killed.value.args[0]

    assert has_caches("here")  # a new run
    for _ in range(2):  # also after a kill before the next checkpoint
        assert not has_caches("other")
    assert has_caches("there")
    assert not has_caches("there", random_seed=2)


@pytest.mark.thorough
@pytest.mark.parametrize("cell", ["summary", "previous"])
def test_cells_with_a_history_train_and_translate(cell, data, tmp_path, capsys):
    settings = {"cell": cell, "unit_type": "gru", "num_train_steps": 2}
    assert train_here(data, tmp_path / "run", **settings) == 0
    assert "best, test: BLEU" in capsys.readouterr().out


@pytest.mark.parametrize("cell", ["cache", "summary", "previous"])
def test_a_corpus_without_documents_is_refused(cell, data, tmp_path, capsys):
    bare = tmp_path / "bare"
    shutil.copytree(data, bare)
    (bare / "dev.docs").unlink()
    argv = tiny_runs.flags(bare, tmp_path / "run", cell=cell, unit_type="gru")
    command_line.fails(argv, capsys, 1, r"dev_prefix has no .*dev\.docs: one line for each")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"trainable_parameters": "cell/gate_*,cell/nothing_*"}, "'cell/nothing_\\*' is no weight"),
        ({"batch_type": "tokens"}, "counts documents side by side"),
    ],
)
def test_settings_that_a_cache_cannot_have(settings, words, data, tmp_path, capsys):
    argv = tiny_runs.flags(data, tmp_path / "run", **{**RUN, **settings})
    command_line.fails(argv, capsys, 2, words)

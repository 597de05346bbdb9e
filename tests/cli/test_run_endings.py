"""Beginnings and endings of runs through the command line."""

import json
import math
import os
import re
import shutil
import signal

import numpy as np
import pytest
from helpers import faults, tiny_runs
from helpers.shipped_runs import read, training_command

from tfmann import api, nmt
from tfmann.cli import dev_evaluation, evaluation_summaries
from tfmann.training import checkpoint, checkpoint_series
from tfmann.training.perplexity import Perplexity
from tfmann.training.train_step import TrainStep

pytestmark = pytest.mark.usefixtures("untraced_module")

SHORT = {"src_max_len": 3, "tgt_max_len": 3, "tgt_max_len_infer": 3}


@pytest.fixture(scope="module")
def ended(small_data, tmp_path_factory):
    """A run that has made its two updates, and evaluated after each."""
    out = tmp_path_factory.mktemp("ended") / "out"
    argv = tiny_runs.flags(small_data, out, num_train_steps=2, steps_per_external_eval=1, **SHORT)
    assert nmt.main(argv) == 0
    return out


def test_early_stopping(small_data, tmp_path):
    """With a learning rate of 0 no evaluation is better than the first."""
    argv = tiny_runs.flags(
        small_data, tmp_path, learning_rate=0.0, num_train_steps=50, steps_per_external_eval=1,
        early_stopping_patience=2, **SHORT,
    )  # fmt: skip
    assert nmt.main(argv) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    assert (results["steps"], results["best_step"]) == (3, 1)
    log = read(tmp_path / "train.log")
    assert "no better dev bleu in 2 evaluations: training ends here" in log
    assert sum(" lr " in line for line in log) == 3
    # scored otherwise, it has ended all the same, as one has that made all its updates
    assert nmt.main([*argv, "--tgt_max_len_infer=4"]) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    assert (results["steps"], results["best_step"]) == (3, 1)
    assert results["hparams"]["tgt_max_len_infer"] == 4
    # with more patience there are evaluations to come
    assert nmt.main([*argv, "--tgt_max_len_infer=4", "--early_stopping_patience=3"]) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    assert (results["steps"], results["best_step"]) == (7, 4)


def test_a_run_that_has_ended_does_not_begin_again_without_its_checkpoints(ended, tmp_path, capsys):
    """Removed to save room; the best weights would be replaced by those of the first evaluation."""
    out = tmp_path / "out"
    shutil.copytree(ended, out)
    shutil.rmtree(out / "checkpoints")
    before = checkpoint.read_state(str(out / "best_bleu"))
    assert nmt.main([f"--out_dir={out}"]) == 1
    message = f"the run in {out} has weights in best_bleu, and checkpoints/ there is empty"
    assert message in capsys.readouterr().err
    assert checkpoint.read_state(str(out / "best_bleu")) == before
    (out / "results.json").unlink()  # it has not ended
    state = out / "best_bleu" / "state.json"
    state.write_text(json.dumps({**before, "history": 2 * before["history"]}))
    assert nmt.main([f"--out_dir={out}"]) == 1 and message in capsys.readouterr().err
    # killed between its first best weights and its first checkpoint
    state.write_text(json.dumps({**before, "history": before["history"][:1]}))
    assert nmt.main([f"--out_dir={out}"]) == 0


def stop_in_update(monkeypatch, number):
    """SIGTERM comes in the update of that number, from 0."""
    update = TrainStep.update

    def stopping_update(self, batch, step, *args):
        if step == number:
            os.kill(os.getpid(), signal.SIGTERM)
        return update(self, batch, step, *args)

    monkeypatch.setattr(TrainStep, "update", stopping_update)


def test_a_run_that_was_stopped_before_its_first_evaluation_may_end_there(
    small_data, tmp_path, monkeypatch
):
    """`num_train_steps` no greater than the step of its only checkpoint."""
    stop_in_update(monkeypatch, 1)
    argv = tiny_runs.flags(small_data, tmp_path, num_train_steps=9, avg_ckpts=True, **SHORT)
    assert nmt.main(argv) == 128 + signal.SIGTERM
    assert not (tmp_path / "best_bleu").exists()
    argv += ["--num_train_steps=1", "--dev_sentences=5"]
    assert nmt.main(argv) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    assert (results["steps"], results["best_step"], len(results["history"])) == (2, 2, 1)
    last = tmp_path / "checkpoints" / "step-00000002"
    state = checkpoint.read_state(str(last))
    assert state["best_step"] == 2 and state["measure"]["dev_sentences"] == 5
    for name, value in checkpoint.read_arrays(str(last)).items():
        for other in ("best_bleu", "avg_checkpoints"):
            assert np.array_equal(checkpoint.read_arrays(str(tmp_path / other))[name], value), name


def test_a_run_that_ends_between_two_evaluations_evaluates_its_last_weights(
    small_data, tmp_path, monkeypatch, capsys
):
    """It was evaluated at step 2, is stopped at step 3, and told to end there."""
    stop_in_update(monkeypatch, 2)
    argv = tiny_runs.flags(
        small_data, tmp_path, num_train_steps=9, steps_per_external_eval=2, avg_ckpts=True, **SHORT
    )  # fmt: skip
    assert nmt.main(argv) == 128 + signal.SIGTERM
    assert nmt.main([*argv, "--num_train_steps=3"]) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    assert [point["step"] for point in results["history"]] == [2, 3] and results["steps"] == 3
    state = checkpoint.read_state(str(tmp_path / "checkpoints" / "step-00000003"))
    assert not state["between"] and len(state["history"]) == 2
    weights = [
        checkpoint.read_arrays(str(tmp_path / "checkpoints" / f"step-0000000{step}"))
        for step in (2, 3)
    ]
    average = checkpoint.read_arrays(str(tmp_path / "avg_checkpoints"))
    for name, value in average.items():
        mean = np.mean([arrays[name] for arrays in weights], axis=0)
        np.testing.assert_allclose(value, mean, rtol=1e-5, atol=1e-7)
    # told to end earlier than it has
    assert nmt.main([*argv, "--num_train_steps=2"]) == 0
    assert "has made 3 updates, more than num_train_steps=2" in "".join(capsys.readouterr())
    results = json.loads((tmp_path / "results.json").read_text())
    assert [point["step"] for point in results["history"]] == [2, 3] and results["steps"] == 3


def test_a_figure_that_fails_loses_no_update(small_data, tmp_path, monkeypatch):
    """The step is saved first, and the command continues after it."""
    shown = []

    def show_memory(board, translator, step, *rest):
        if step == 4:
            shown.append(step)
            raise RuntimeError("no room for the figure")
        shown.append(step)
        assert checkpoint_series.steps(str(tmp_path / "checkpoints"))[-1] == step

    monkeypatch.setattr(evaluation_summaries, "show_memory", show_memory)
    argv = tiny_runs.flags(
        small_data, tmp_path, num_train_steps=5, steps_per_external_eval=2, **SHORT
    )
    with pytest.raises(RuntimeError, match="no room for the figure"):
        nmt.main(argv)
    assert checkpoint_series.steps(str(tmp_path / "checkpoints")) == [2, 4]
    assert nmt.main(argv) == 0
    assert shown == [2, 4, 5]
    results = json.loads((tmp_path / "results.json").read_text())
    assert [point["step"] for point in results["history"]] == [2, 4, 5]


def test_an_evaluation_that_fails_loses_no_update(small_data, tmp_path, monkeypatch):
    """The step is saved first; the command begins with its evaluation, and goes on from there."""
    argv = tiny_runs.flags(
        small_data, tmp_path, num_train_steps=5, steps_per_external_eval=2, **SHORT
    )
    run, update, updates = dev_evaluation.DevEvaluation.run, TrainStep.update, []

    def counted_update(self, batch, step, *args):
        updates.append(step)
        return update(self, batch, step, *args)

    def failing_run(self, state, board):
        if state.step == 4:
            raise RuntimeError("no memory for dev")
        return run(self, state, board)

    monkeypatch.setattr(TrainStep, "update", counted_update)
    with monkeypatch.context() as patch:
        patch.setattr(dev_evaluation.DevEvaluation, "run", failing_run)
        with pytest.raises(RuntimeError, match="no memory for dev"):
            nmt.main(argv)
    saved = checkpoint.read_state(str(tmp_path / "checkpoints" / "step-00000004"))
    assert saved["between"] and [point["step"] for point in saved["history"]] == [2]
    assert nmt.main(argv) == 0
    assert updates == [0, 1, 2, 3, 4]
    results = json.loads((tmp_path / "results.json").read_text())
    assert [point["step"] for point in results["history"]] == [2, 4, 5]
    assert not checkpoint.read_state(str(tmp_path / "checkpoints" / "step-00000004"))["between"]


def test_evaluations_may_be_greedy_and_of_the_first_sentences(small_data, tmp_path, monkeypatch):
    written = []
    monkeypatch.setattr(dev_evaluation, "write_lines", lambda _, lines: written.append(lines))
    argv = tiny_runs.flags(
        small_data, tmp_path, num_train_steps=1, infer_mode="beam_search", beam_width=4,
        dev_infer_mode="greedy", dev_sentences=5, init_weight=1.0, embedding_init_weight=3.0,
        tgt_max_len_infer=5,
    )  # fmt: skip
    assert nmt.main(argv) == 0
    model = api.load(str(tmp_path))
    lines = read(small_data / "dev.src")
    greedy = model.with_search(infer_mode="greedy", length_penalty_weight=0.0)
    assert written == [[n_best[0].text for n_best in greedy.translate(lines[:5])]]
    final = [n_best[0].text for n_best in model.translate(lines)]
    assert read(tmp_path / "output_dev") == final
    assert len(final) == 6 and final[:5] != written[0]


@pytest.mark.thorough
def test_another_model_starts_from_what_fits(data, trained, tmp_path):
    """An NTM attention on the encoder and embeddings of a luong model; several references."""
    older = trained("luong")
    for name in ("test.src", "test.tgt"):
        shutil.copy(data / name, tmp_path / name)
    shutil.copy(tmp_path / "test.tgt", tmp_path / "test.tgt1")
    os.rename(tmp_path / "test.tgt", tmp_path / "test.tgt0")
    out = tmp_path / "out"
    argv = training_command(
        "ntm_attention", data, out, init_checkpoint=older, learning_rate=0.0,
        num_train_steps=2, avg_ckpts=False, test_prefix=tmp_path / "test",
    )  # fmt: skip
    assert nmt.main(argv) == 0
    log = read(out / "train.log")
    initialised = next(line for line in log if line.startswith(f"from {older / 'best_bleu'}: "))
    fresh = next(line for line in log if line.startswith("new: "))
    older_arrays = checkpoint.read_arrays(str(older / "best_bleu"))
    arrays = checkpoint.read_arrays(str(out / "best_bleu"))
    assert set(initialised.split(": ")[1].split(", ")) == set(older_arrays) & set(arrays)
    assert set(fresh.split(": ")[1].split(", ")) == set(arrays) - set(older_arrays)
    assert "model/source_embedding" in initialised and "model/cell/" in fresh
    for name in set(older_arrays) & set(arrays):
        assert np.array_equal(older_arrays[name], arrays[name]), name
    results = json.loads((out / "results.json").read_text())
    assert all("nrefs:2" in score["signature"] for score in results["best"]["test"])
    assert all("nrefs:1" in score["signature"] for score in results["best"]["dev"])


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_loss_that_is_not_finite_ends_the_run(small_data, ended, tmp_path, capsys):
    """One message; the checkpoints remain, so that the same command resumes from them."""
    out = tmp_path / "out"
    shutil.copytree(ended, out)
    before = contents(out / "checkpoints"), contents(out / "best_bleu")
    capsys.readouterr()
    argv = tiny_runs.flags(
        small_data, out, num_train_steps=8, learning_rate=1e38, **SHORT,
        steps_per_stats=10, steps_per_external_eval=10, steps_per_checkpoint=10,
    )  # fmt: skip
    assert nmt.main(argv) == 1
    stderr = capsys.readouterr().err
    assert stderr.count("\n") == 1
    step = 3  # the update before it was the first one with that rate
    assert stderr.startswith(f"tfmann: loss or gradient is not finite at step {step}. The check")
    assert (contents(out / "checkpoints"), contents(out / "best_bleu")) == before


@pytest.mark.thorough
def test_a_checkpoint_that_no_lower_rate_helps_is_named(small_data, tmp_path, capsys):
    """Its weights were saved before the next update showed that they have no loss."""
    out = tmp_path / "out"
    argv = tiny_runs.flags(small_data, out, num_train_steps=3, steps_per_checkpoint=1,
                      steps_per_external_eval=3)  # fmt: skip
    for rate in (1e38, 1e-3):
        assert nmt.main([*argv, f"--learning_rate={rate}"]) == 1
        stderr = capsys.readouterr().err
        assert "loss or gradient is not finite at step 1. " in stderr and stderr.count("\n") == 1
        folder = re.search(
            r"Continuing from (\S+) would end in the same way: remove it", stderr
        ).group(1)
    assert [folder] == [str(path) for path in (out / "checkpoints").iterdir()]
    shutil.rmtree(folder)
    assert nmt.main([*argv, "--learning_rate=1e-3"]) == 0


def test_weights_that_are_not_finite_are_neither_saved_nor_evaluated(
    small_data, tmp_path, capsys, monkeypatch
):
    """The last update made them so, and no other looks at its loss."""

    def overflow(self, batch, step, *args):
        losses = update(self, batch, step, *args)
        if step == 1:
            self.variables[0].assign_add(math.inf * self.variables[0])
        return losses

    update = TrainStep.update
    monkeypatch.setattr(TrainStep, "update", overflow)
    out = tmp_path / "out"
    assert nmt.main(tiny_runs.flags(small_data, out, num_train_steps=2)) == 1
    stderr = capsys.readouterr().err
    assert (
        stderr.startswith("tfmann: a weight is not finite at step 2. ") and stderr.count("\n") == 1
    )
    assert not (out / "best_bleu").exists() and not any((out / "checkpoints").iterdir())


def test_a_dev_loss_that_is_not_finite_ends_the_run(small_data, tmp_path, capsys, monkeypatch):
    """Weights may be finite and give infinite logits, which say nothing."""
    monkeypatch.setattr(Perplexity, "measure", lambda self, batches: (math.nan, {}))
    out = tmp_path / "out"
    assert nmt.main(tiny_runs.flags(small_data, out, num_train_steps=1)) == 1
    stderr = capsys.readouterr().err
    assert stderr.startswith("tfmann: the loss on dev is not finite at step 1. The checkpoints are")
    assert stderr.count("\n") == 1
    assert not (out / "best_bleu").exists() and not any((out / "checkpoints").iterdir())


def test_weights_that_begin_beyond_float32_end_the_run_with_one_message(
    small_data, tmp_path, capsys
):
    argv = tiny_runs.flags(small_data, tmp_path / "out", init_op="normal", init_weight=3e38)
    assert nmt.main(argv) == 1
    stderr = capsys.readouterr().err
    assert stderr.startswith("tfmann: loss or gradient is not finite at step 0. ")
    assert stderr.count("\n") == 1


def test_a_run_that_diverges_is_shown_to_its_end(small_data, tmp_path, capsys):
    """Losses far beyond what a perplexity can be the exponential of."""
    out = tmp_path / "out"
    assert nmt.main(tiny_runs.flags(small_data, out, optimizer="sgd", learning_rate=1e6,
                               num_train_steps=3, tgt_max_len_infer=4)) == 0  # fmt: skip
    assert capsys.readouterr().err == ""
    log = (out / "train.log").read_text(encoding="utf-8")
    perplexities = [float(text) for text in re.findall(r"step [23].* ppl ([0-9.]+) ", log)]
    assert len(perplexities) == 2 and min(perplexities) > 1e38
    history = json.loads((out / "results.json").read_text())["history"]
    assert history[-1]["dev_ppl"] > 1e38


def test_a_disk_that_fills_up_ends_the_run(traced, small_data, tmp_path, capsys):
    with faults.disk(tmp_path / "disk", "900k") as disk:
        out = disk / "out"
        argv = tiny_runs.flags(
            small_data, out, num_train_steps=40, steps_per_checkpoint=1, steps_per_external_eval=40,
            num_keep_ckpts=100,
        )  # fmt: skip
        assert nmt.main(argv) == 1
        stderr = capsys.readouterr().err
        assert stderr.count("\n") == 1 and "No space left on device" in stderr, stderr
        steps = checkpoint_series.steps(str(out / "checkpoints"))
        assert steps == list(range(1, len(steps) + 1)) and 1 < len(steps) < 40
        last = checkpoint_series.latest(str(out / "checkpoints"), pytest.fail)
        assert last == checkpoint_series.step_folder(str(out / "checkpoints"), steps[-1])
        assert not list(out.rglob("*.tmp*"))

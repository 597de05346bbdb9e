"""Shipped configurations, shrunk, through the command line; how a run begins, ends and fails."""

import dataclasses
import json
import math
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers import faults, tiny

from tfmann import config, nmt
from tfmann.evaluation import bleu
from tfmann.training import checkpoint, checkpoint_series
from tfmann.training.perplexity import Perplexity
from tfmann.training.train_step import TrainStep
from tfmann.utils import resources

CONFIGURATIONS = [tiny.ROOT / "hparams" / name for name in resources.settings_names()]
TINY = [path.stem for path in CONFIGURATIONS if path.parent.name == "tiny"]
WITHOUT_ALIGNMENTS = ("dnc", "ntm")
FIRST = "luong"  # the one that is looked at more closely
WATCHED = {  # what is drawn of a dev sentence
    "luong": {"attention"},
    "ntm": {"addresses/read_head_0", "addresses/write_head_0"},
    "mad": {"attention", "addresses/read_head_0", "addresses/write_head_0"},
}
PAIRS, STEPS = 200, 4
SHRUNK = {
    "num_units": 8,
    "embedding_size": 6,
    "batch_size": 32,
    "num_train_steps": STEPS,
    "steps_per_stats": 1,
    "steps_per_external_eval": 2,
    "steps_per_checkpoint": 1,
    "num_keep_ckpts": 2,
    "avg_ckpts": True,
    "beam_width": 2,
    "tgt_max_len_infer": 8,
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tiny.corpus(tmp_path_factory.mktemp("corpus"), PAIRS)


def training_command(name, data, out, **changes):
    """The command line that trains a shipped tiny configuration, made smaller."""
    path = tiny.ROOT / "hparams" / "tiny" / f"{name}.json"
    return [f"--hparams_path={path}", *tiny.path_flags(data, out, **{**SHRUNK, **changes})]


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """Trains a tiny configuration at its first use; returns its folder."""
    folders = {}

    def folder(name):
        if name not in folders:
            folders[name] = tmp_path_factory.mktemp(name) / "out"
            images = 2 if name in WATCHED else 0
            argv = training_command(name, data, folders[name], num_attention_images=images)
            assert nmt.main(argv) == 0
        return folders[name]

    return folder


def read(path):
    return Path(path).read_text(encoding="utf-8").splitlines()


# --- shipped configurations -------------------------------------------------------------------


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda p: str(p.relative_to(tiny.ROOT)))
def test_every_shipped_configuration_can_be_used(path):
    settings = config.read_json(path)
    hparams = config.make({}, str(path))
    for key, value in settings.items():
        assert getattr(hparams, key) == value, key
    # the cell by name, and where nothing depends on somebody's folders
    assert "cell" in settings and {"src", "tgt"} <= set(settings)
    path_keys = ("train_prefix", "dev_prefix", "test_prefix", "vocab_prefix", "init_checkpoint")
    assert not [key for key in path_keys if settings.get(key)]


def test_every_cell_has_a_tiny_configuration():
    cells = {config.make({}, str(path)).cell for path in CONFIGURATIONS
             if path.parent.name == "tiny"}  # fmt: skip
    assert cells == set(config.CELLS)


@pytest.mark.parametrize("name", TINY)
def test_a_shipped_configuration_trains(name, data, trained):
    out = trained(name)
    results = json.loads((out / "results.json").read_text())
    assert results["cell"] == config.read_json(out / "hparams.json")["cell"]
    assert results["steps"] == STEPS and results["best_step"] in (2, 4)
    assert results["parameters"] > 1000 and results["words"] > PAIRS / 2
    assert results["words_per_second"] > 0 and results["train_seconds"] > 0
    assert [entry["step"] for entry in results["history"]] == [2, 4]
    assert all(1 < entry["dev_ppl"] < 1e4 for entry in results["history"])
    assert results["hparams"]["num_units"] == 8
    assert {"python", "tensorflow", "sacrebleu"} <= set(results["versions"])
    assert results["date"] and results["revision"] and results["hardware"]["cores"]
    for weights, suffix in {"best": "", "average": "_average"}.items():
        for split in ("dev", "test"):
            assert [score["name"] for score in results[weights][split]] == ["BLEU", "chrF2", "TER"]
            for score in results[weights][split]:
                assert math.isfinite(score["value"]) and "version:" in score["signature"]
            output = str(out / f"output_{split}{suffix}")
            assert len(read(output)) == len(read(data / f"{split}.src"))
            scores = bleu.evaluate_files(output, [str(data / f"{split}.tgt")], bleu.METRICS)
            assert [dataclasses.asdict(score) for score in scores] == results[weights][split]
    assert checkpoint_series.steps(str(out / "checkpoints")) == [STEPS - 1, STEPS]


@pytest.mark.parametrize("name", TINY)
def test_a_trained_configuration_translates_scores_and_aligns(name, data, trained, tmp_path):
    out, source = trained(name), data / "test.src"
    model = [f"--out_dir={out}", f"--inference_input_file={source}"]
    argv = [*model, f"--inference_output_file={tmp_path / 'text'}",
            f"--alignment_file={tmp_path / 'links'}"]  # fmt: skip
    if name in WITHOUT_ALIGNMENTS:
        assert nmt.main(argv) == 2
        assert not (tmp_path / "links").exists()
        assert nmt.main(argv[:-1]) == 0
        assert len(read(tmp_path / "text")) == len(read(source))
        return
    assert nmt.main(argv) == 0
    lines = len(read(source))
    assert len(read(tmp_path / "text")) == lines and len(read(tmp_path / "links")) == lines
    patterns = {"score": r"-\d+\.\d{4}", "align": r"(\d+-\d+( \d+-\d+)*)?"}
    for mode in patterns if name == FIRST else ["align"]:
        argv = [*model, f"--mode={mode}", f"--inference_ref_file={data / 'test.tgt'}",
                f"--inference_output_file={tmp_path / mode}"]  # fmt: skip
        assert nmt.main(argv) == 0
        assert len(read(tmp_path / mode)) == lines
        assert all(re.fullmatch(patterns[mode], line) for line in read(tmp_path / mode))


def test_eval_gives_the_scores_of_the_training_run(data, trained, tmp_path):
    out = trained(FIRST)
    argv = [f"--out_dir={out}", "--mode=eval", f"--inference_output_file={tmp_path / 'scores'}"]
    assert nmt.main(argv) == 0
    record = json.loads((tmp_path / "scores").read_text())
    assert record["checkpoint"] == str(out / "best_bleu")
    assert record["scores"] == json.loads((out / "results.json").read_text())["best"]


# --- what a run shows and keeps ---------------------------------------------------------------


def test_the_log_has_a_line_an_update_and_an_evaluation(trained):
    log = read(trained(FIRST) / "train.log")
    stats = re.compile(
        r"step (\d+) lr [\d.e-]+ step-time [\d.]+s words/s \d+ ppl [\d.]+ gN [\d.]+"
        r"( best bleu [\d.]+ at \d+)?, .* of updates left"
    )
    matches = [stats.fullmatch(line) for line in log]
    assert [int(match.group(1)) for match in matches if match] == [1, 2, 3, 4]
    assert [bool(match.group(2)) for match in matches if match] == [False, False, True, True]
    assert sum(bool(re.match(r"step \d+: dev ppl", line)) for line in log) == 2
    for name in ("src", "ref", "nmt"):
        assert sum(line.startswith(f"  {name}:") for line in log) == 2
    assert any(line.startswith(f"{PAIRS} pairs; 0 with an empty side") for line in log)


def steps_of_tags(out):
    """Returns the steps of each tag in a run's TensorBoard files."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(out / "train_log"), size_guidance={"tensors": 0})
    events.Reload()
    return {tag: [e.step for e in events.Tensors(tag)] for tag in events.Tags()["tensors"]}


@pytest.mark.parametrize("name", ["dnc", *WATCHED])
def test_tensorboard_has_the_memory_at_the_watched_sentences(name, trained):
    steps = steps_of_tags(trained(name))
    expected = {f"{tag}/{index}" for tag in WATCHED.get(name, ()) for index in (0, 1)}
    assert {tag for tag in steps if tag.startswith(("attention", "addresses"))} == expected
    assert all(steps[tag] == [2, 4] for tag in expected)


def test_tensorboard_has_curves_samples_and_settings(trained):
    steps = steps_of_tags(trained(FIRST))
    for tag in ("train/perplexity", "train/gradient_norm", "train/words_per_second"):
        assert steps[tag] == [1, 2, 3, 4]
    for tag in ("dev/bleu", "dev/perplexity", "sample", "sharpness/attention/entropy"):
        assert steps[tag] == [2, 4]
    assert any("hparams" in tag for tag in steps)


def test_the_average_is_of_the_last_checkpoints(trained):
    out = trained(FIRST)
    actual = checkpoint.read_arrays(str(out / "avg_checkpoints"))
    checkpoints = [
        checkpoint.read_arrays(str(out / "checkpoints" / f"step-0000000{i}")) for i in (3, 4)
    ]
    for name, value in actual.items():
        expected = (checkpoints[0][name].astype(np.float64) + checkpoints[1][name]) / 2
        assert np.array_equal(value, expected.astype(np.float32)), name
        assert not np.array_equal(value, checkpoints[1][name]), f"{name} does not change"


# --- beginnings and endings -------------------------------------------------------------------


def test_early_stopping(data, tmp_path):
    """With a learning rate of 0 no evaluation is better than the first."""
    argv = tiny.flags(
        data, tmp_path, learning_rate=0.0, num_train_steps=50, steps_per_external_eval=2,
        early_stopping_patience=2,
    )  # fmt: skip
    assert nmt.main(argv) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    assert (results["steps"], results["best_step"]) == (6, 2)
    log = read(tmp_path / "train.log")
    assert "no better dev bleu in 2 evaluations: training ends here" in log
    assert sum(" lr " in line for line in log) == 6


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


def test_a_loss_that_is_not_finite_ends_the_run(data, trained, tmp_path, capsys):
    """One message; the checkpoints remain, so that the same command resumes from them."""
    out = tmp_path / "out"
    shutil.copytree(trained(FIRST), out)
    before = contents(out / "checkpoints"), contents(out / "best_bleu")
    capsys.readouterr()
    argv = training_command(
        FIRST, data, out, num_train_steps=STEPS + 6, learning_rate=1e30,
        steps_per_stats=10, steps_per_external_eval=10, steps_per_checkpoint=10,
    )  # fmt: skip
    assert nmt.main(argv) == 1
    stderr = capsys.readouterr().err
    assert stderr.count("\n") == 1
    step = STEPS + 1  # the update before it was the first one with that rate
    assert stderr.startswith(f"tfmann: loss or gradient is not finite at step {step}. The check")
    assert (contents(out / "checkpoints"), contents(out / "best_bleu")) == before


def test_a_checkpoint_that_no_lower_rate_helps_is_named(data, tmp_path, capsys):
    """Its weights were saved before the next update showed that they have no loss."""
    out = tmp_path / "out"
    argv = tiny.flags(data, out, num_train_steps=3, steps_per_checkpoint=1,
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
    data, tmp_path, capsys, monkeypatch
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
    assert nmt.main(tiny.flags(data, out, num_train_steps=2)) == 1
    stderr = capsys.readouterr().err
    assert (
        stderr.startswith("tfmann: a weight is not finite at step 2. ") and stderr.count("\n") == 1
    )
    assert not (out / "best_bleu").exists() and not any((out / "checkpoints").iterdir())


def test_a_dev_loss_that_is_not_finite_ends_the_run(data, tmp_path, capsys, monkeypatch):
    """Weights may be finite and give infinite logits, which say nothing."""
    monkeypatch.setattr(Perplexity, "mean_loss", lambda self, batches: math.nan)
    out = tmp_path / "out"
    assert nmt.main(tiny.flags(data, out, num_train_steps=1)) == 1
    stderr = capsys.readouterr().err
    assert stderr.startswith("tfmann: the loss on dev is not finite at step 1. ")
    assert stderr.count("\n") == 1
    assert not (out / "best_bleu").exists() and not any((out / "checkpoints").iterdir())


def test_weights_that_begin_beyond_float32_end_the_run_with_one_message(data, tmp_path, capsys):
    argv = tiny.flags(data, tmp_path / "out", init_op="normal", init_weight=3e38)
    assert nmt.main(argv) == 1
    stderr = capsys.readouterr().err
    assert stderr.startswith("tfmann: loss or gradient is not finite at step 0. ")
    assert stderr.count("\n") == 1


def test_a_run_that_diverges_is_shown_to_its_end(data, tmp_path, capsys):
    """Losses far beyond what a perplexity can be the exponential of."""
    out = tmp_path / "out"
    assert nmt.main(tiny.flags(data, out, optimizer="sgd", learning_rate=1e6,
                               num_train_steps=3, tgt_max_len_infer=4)) == 0  # fmt: skip
    assert capsys.readouterr().err == ""
    log = (out / "train.log").read_text(encoding="utf-8")
    perplexities = [float(text) for text in re.findall(r"step [23].* ppl ([0-9.]+) ", log)]
    assert len(perplexities) == 2 and min(perplexities) > 1e38
    history = json.loads((out / "results.json").read_text())["history"]
    assert history[-1]["dev_ppl"] > 1e38


def test_a_disk_that_fills_up_ends_the_run(data, tmp_path, capsys):
    with faults.disk(tmp_path / "disk", "900k") as disk:
        out = disk / "out"
        argv = tiny.flags(
            data, out, num_train_steps=40, steps_per_checkpoint=1, steps_per_external_eval=40,
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

"""Shipped configurations, shrunk, through the command line: training, results, the log."""

import dataclasses
import json
import math
import re

import numpy as np
import pytest
from helpers import tiny_runs
from helpers.shipped_runs import FIRST, PAIRS, STEPS, WATCHED, read

from tfmann import config, nmt
from tfmann.evaluation import bleu
from tfmann.training import checkpoint, checkpoint_series
from tfmann.utils import resources

CONFIGURATIONS = [tiny_runs.ROOT / "hparams" / name for name in resources.settings_names()]
TINY = [path.stem for path in CONFIGURATIONS if path.parent.name == "tiny"]
QUICK = ["ntm", "cache"]
WITHOUT_ALIGNMENTS = ("dnc", "dnc_content_only", "dnc_msd", "ntm", "ntm_hops")


# --- shipped configurations -------------------------------------------------------------------


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda p: str(p.relative_to(tiny_runs.ROOT)))
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


@pytest.mark.quick(*QUICK)
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


def test_each_file_and_each_figure_of_the_log_is_explained(trained):
    out, page = trained("ntm"), (tiny_runs.ROOT / "docs" / "runs.md").read_text()
    written = {re.sub(r"^vocab\..+", "vocab.SRC", path.name) for path in out.iterdir()}
    files = set(re.findall(r"`([\w.]+)/?[^`]*`", page[: page.index("Other commands")]))
    assert written <= files and {"checkpoints", "vocab.SRC"} <= written
    log = (out / "train.log").read_text()
    (line,) = re.findall(r"^step 4 (lr .*), ", log, re.MULTILINE)
    figures = re.split(r" [\d.]+s? ?", line)
    assert {"lr", "gN", "best bleu"} <= set(figures)
    for figure in set(figures) - {"at", ""}:
        assert f"| `{figure}` |" in page, figure
    measures = re.findall(r"^  \w+: (entropy.*)", log, re.MULTILINE)[0]
    assert (
        re.sub(r"[\d.]+", "N", measures)
        == "entropy N of uniform, greatest weight N, N positions per step"
    )
    for measure in ("entropy", "greatest weight", "on </s>", "positions per step"):
        assert f"| `{measure}` |" in page


@pytest.mark.quick(*QUICK)
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
        r"( best bleu [\d.]+ at \d+)?, (.* of updates left|with the time to compile it)"
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


@pytest.mark.quick("luong", "ntm")
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

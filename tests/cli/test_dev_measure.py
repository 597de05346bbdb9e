"""A run that continues compares dev BLEU only with what was measured in the same way."""

import json
import os
import shutil
import signal

import pytest
from helpers import tiny_runs
from helpers.shipped_runs import read

from tfmann import config, nmt
from tfmann.cli import dev_measure
from tfmann.cli.dev_evaluation import DevEvaluation
from tfmann.config import HParams
from tfmann.evaluation import length_penalty
from tfmann.training import checkpoint, checkpoint_series, trainer
from tfmann.training.train_state import TrainState
from tfmann.training.train_step import TrainStep

pytestmark = pytest.mark.usefixtures("untraced_module")

RUN = {"learning_rate": 0.0, "steps_per_external_eval": 2, "infer_mode": "beam_search",
       "beam_width": 2, "length_penalty_weights": "0.7", "init_weight": 1.0,
       "embedding_init_weight": 3.0, "tgt_max_len_infer": 5}  # fmt: skip


@pytest.fixture(scope="module")
def first(small_data, tmp_path_factory):
    """A finished run of 2 steps, whose rate of 0 lets later evaluations differ in nothing else."""
    out = tmp_path_factory.mktemp("first") / "out"
    assert nmt.main(tiny_runs.flags(small_data, out, **RUN, num_train_steps=2)) == 0
    return out


def continued(first, tmp_path, *flags):
    """Continues a copy of a run; returns its folder, the new part of its log and its last state."""
    out = tmp_path / "out"
    shutil.copytree(first, out)
    before = len(read(out / "train.log"))
    assert nmt.main([f"--out_dir={out}", "--num_train_steps=4", *flags]) == 0
    state = checkpoint.read_state(str(out / "checkpoints" / "step-00000004"))
    return out, read(out / "train.log")[before:], state


def otherwise(log):
    return [line for line in log if line.startswith("dev bleu is measured differently")]


def test_a_run_measured_otherwise_looks_for_its_best_again(first, tmp_path):
    """Else no evaluation would be better than the first: the best has the same weights."""
    before = checkpoint.read_state(str(first / "best_bleu"))
    out, log, state = continued(first, tmp_path, "--dev_sentences=5")
    best = checkpoint.read_state(str(out / "best_bleu"))
    assert (best["step"], state["best_step"], state["stale_evaluations"]) == (4, 4, 0)
    assert state["best_bleu"] == state["history"][-1]["dev_bleu"]
    (line,) = otherwise(log)
    assert "(dev_sentences 0 -> 5)" in line and f"({before['best_bleu']:.2f} at step 2)" in line
    assert not any("best bleu -1" in line for line in log)


def test_a_run_measured_as_before_keeps_its_best(small_data, first, tmp_path):
    """The same text elsewhere, and settings that choose no other translation."""
    for suffix in ("src", "tgt"):
        shutil.copy(small_data / f"dev.{suffix}", tmp_path / f"moved.{suffix}")
    flags = f"--dev_prefix={tmp_path / 'moved'}", "--infer_batch_size=7"
    out, log, state = continued(first, tmp_path, *flags)
    assert (state["best_step"], state["stale_evaluations"]) == (2, 1)
    assert checkpoint.read_state(str(out / "best_bleu"))["step"] == 2
    assert not otherwise(log)


def test_a_longer_training_evaluates_with_the_length_penalty_of_its_beginning(
    first, tmp_path, monkeypatch
):
    """The end of the first has chosen another for translating, and saved it."""
    used = []
    evaluate = DevEvaluation.run

    def run(self, state, board):
        used.append(self.translator.hparams.length_penalty_weight)
        return evaluate(self, state, board)

    monkeypatch.setattr(DevEvaluation, "run", run)
    assert config.read_json(first / "hparams.json")["length_penalty_weight"] == 0.7
    out, log, state = continued(first, tmp_path)
    assert used == [0.0] and not otherwise(log)
    assert (state["best_step"], state["stale_evaluations"]) == (2, 1)
    scores = [entry["dev_bleu"] for entry in state["history"]]
    assert scores[0] == pytest.approx(scores[1], abs=0.01)
    assert any(line.startswith("evaluations keep length_penalty_weight=0, ") for line in log)
    assert config.read_json(out / "hparams.json")["length_penalty_weight"] == 0.7


def test_a_length_penalty_that_the_user_gives_outlives_a_kill(first, tmp_path, monkeypatch):
    """Before the next checkpoint, when only the saved settings would know of it."""
    out = tmp_path / "out"
    shutil.copytree(first, out)
    command = [f"--out_dir={out}", "--num_train_steps=4", "--length_penalty_weight=0.3"]

    class Killed(BaseException):
        pass

    def train(*_):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "train", train)
        with pytest.raises(Killed):
            nmt.main(command)
    before = len(read(out / "train.log"))
    assert nmt.main(command) == 0
    log = read(out / "train.log")[before:]
    assert not any(line.startswith("evaluations keep") for line in log) and not otherwise(log)
    state = checkpoint.read_state(str(out / "checkpoints" / "step-00000004"))
    assert state["measure"][dev_measure.WEIGHT] == 0.3 and state["best_step"] == 4


@pytest.mark.thorough
def test_a_checkpoint_between_two_saves_is_none_of_the_last_with_another_measure(
    first, tmp_path, monkeypatch
):
    """Written because the run was stopped, it would be one of those that are averaged."""
    out, update = tmp_path / "out", TrainStep.update
    shutil.copytree(first, out)

    def stop_at_third(self, batch, step, *args):
        os.kill(os.getpid(), signal.SIGTERM)
        return update(self, batch, step, *args)

    command = [f"--out_dir={out}", "--num_train_steps=4", "--avg_ckpts"]
    with monkeypatch.context() as patch:
        patch.setattr(TrainStep, "update", stop_at_third)
        assert nmt.main(command) == 128 + signal.SIGTERM
    assert checkpoint_series.steps(str(out / "checkpoints")) == [2, 3]
    assert nmt.main([*command, "--dev_sentences=5"]) == 0
    assert checkpoint_series.steps(str(out / "checkpoints")) == [2, 4]
    assert any("mean of the last 2, dev" in line for line in read(out / "train.log"))


def test_the_same_command_again_chooses_the_same_length_penalty(first, tmp_path, monkeypatch):
    """From the lists of the search that evaluations make, not of the weight that it has saved."""
    used, choose = [], length_penalty.choose

    def recorded(n_best, search, references, hparams, weights):
        lists = list(n_best)
        used.append((hparams.length_penalty_weight, [len(line) for line in lists]))
        return choose(lists, search, references, hparams, weights)

    monkeypatch.setattr(length_penalty, "choose", recorded)
    out = tmp_path / "out"
    shutil.copytree(first, out)
    before = json.loads((out / "results.json").read_text())["length_penalty"]
    assert before["weight"] == config.read_json(out / "hparams.json")[dev_measure.WEIGHT] == 0.7
    assert nmt.main([f"--out_dir={out}"]) == 0
    ((weight, sizes),) = used
    assert weight == 0.0 and set(sizes) == {RUN["beam_width"]}
    assert json.loads((out / "results.json").read_text())["length_penalty"] == before


@pytest.mark.thorough
def test_a_weight_that_was_chosen_is_forgotten_where_dev_is_translated_greedily_too(
    first, tmp_path, monkeypatch
):
    """Evaluations do not read it, but the choice after training starts from that of the user."""
    used, choose = [], length_penalty.choose

    def recorded(n_best, search, references, hparams, weights):
        used.append(hparams.length_penalty_weight)
        return choose(n_best, search, references, hparams, weights)

    monkeypatch.setattr(length_penalty, "choose", recorded)
    out, command = tmp_path / "out", ["--dev_infer_mode=greedy", "--num_train_steps=3"]
    shutil.copytree(first, out)
    arguments = json.loads((out / "hparams.json").read_text())
    arguments["length_penalty_weight"] = 0.0
    (out / "hparams.json").write_text(json.dumps(arguments))
    assert nmt.main([f"--out_dir={out}", *command]) == 0
    assert config.read_json(out / "hparams.json")[dev_measure.WEIGHT] == 0.7
    assert nmt.main([f"--out_dir={out}"]) == 0
    assert used == [0.0, 0.0]
    assert "evaluations keep" not in (out / "train.log").read_text()


@pytest.mark.parametrize(
    "before, now, saved, kept",
    [
        (0.0, 0.7, 0.7, 0.0),  # chosen at the end, or by tune
        (0.0, 0.7, 0.0, None),  # given by the user now
        (0.7, 0.7, 0.7, None),
        (None, 0.7, 0.7, None),  # an older checkpoint, or a greedy search before
        (0.0, None, 0.7, None),  # a greedy search from here
    ],
)
def test_evaluations_keep_a_length_penalty_that_was_chosen_after_them(before, now, saved, kept):
    measures = [{} if weight is None else {dev_measure.WEIGHT: weight} for weight in (before, now)]
    weight = dev_measure.kept_weight(*measures, {dev_measure.WEIGHT: saved})
    assert weight == kept


def measure(hparams, out_dir=""):
    return dev_measure.measure(hparams, str(out_dir))


def settings(small_data, **changes):
    return HParams(**{"src": "src", "tgt": "tgt", "dev_prefix": str(small_data / "dev"), **changes})


@pytest.mark.parametrize(
    "mode, changes, names",
    [
        ("beam_search", {"beam_width": 3}, ["beam_width"]),
        ("beam_search", {"sampling_temperature": 0.5}, []),
        ("beam_search", {"length_penalty_weight": 0.5}, ["length_penalty_weight"]),
        ("greedy", {"beam_width": 3, "length_penalty_weight": 0.5}, []),
        ("sample", {"sampling_top_p": 0.5, "beam_width": 3}, ["sampling_top_p"]),
        ("greedy", {"bleu_tokenize": "13a", "bleu_lowercase": True},
         ["bleu_lowercase", "bleu_tokenize"]),
        ("greedy", {"infer_mode": "beam_search", "dev_infer_mode": "greedy"}, []),
        ("greedy", {"infer_mode": "beam_search"}, ["infer_mode"]),
        ("greedy", {"tgt_max_len_infer": 7, "learning_rate": 0.5}, ["tgt_max_len_infer"]),
    ],
)  # fmt: skip
def test_what_dev_bleu_depends_on(small_data, mode, changes, names):
    hparams = settings(small_data, infer_mode=mode)
    before, now = map(measure, (hparams, hparams.replace(**changes)))
    lines = dev_measure.differences(before, now)
    assert sorted(line.split()[0] for line in lines) == names


def test_another_dev_set_is_another_measure(small_data):
    before = measure(settings(small_data))
    now = measure(settings(small_data, dev_prefix=str(small_data / "test")))
    assert dev_measure.differences(before, now) == ["another dev set"]


def test_a_lexicon_that_was_moved_is_the_same_and_one_that_was_changed_is_not(small_data, tmp_path):
    """The path of a lexicon follows that of --out_dir of `tfmann reproduce`."""
    lexicon, moved = tmp_path / "lexicon.txt", tmp_path / "moved.txt"
    for path in (lexicon, moved):
        path.write_text("a b 1\n")
    hparams = settings(small_data, replace_unk=True, lexicon_file=str(lexicon))
    before = measure(hparams)
    elsewhere = hparams.replace(lexicon_file=str(moved))
    assert dev_measure.differences(before, measure(elsewhere)) == []
    older = {**before, "lexicon_file": str(lexicon)}  # from when paths were compared
    assert dev_measure.differences(older, measure(elsewhere)) == []
    moved.write_text("a c 1\n")
    now = measure(elsewhere)
    assert dev_measure.differences(before, now) == ["another lexicon or memory"]
    memory = measure(settings(small_data, translation_memory=f"{lexicon},{lexicon}"))
    without = measure(settings(small_data))
    assert dev_measure.differences(without, memory) == ["another lexicon or memory"]


def test_a_lexicon_in_the_folder_of_the_run_that_was_changed_is_another(small_data, tmp_path):
    hparams, path = settings(small_data, replace_unk=True), tmp_path / "lexicon.txt"
    path.write_text("a b 1\n")
    before = measure(hparams, tmp_path)
    path.write_text("a c 1\n")
    now = measure(hparams, tmp_path)
    assert dev_measure.differences(before, now) == ["another lexicon or memory"]


def test_patience_begins_again_with_another_measure(small_data):
    now, log = measure(settings(small_data)), []
    state = TrainState(best_bleu=30.0, best_step=5, stale_evaluations=3, measure=now)
    dev_measure.compare(state, now, log.append)
    assert (state.best_bleu, state.stale_evaluations, log) == (30.0, 3, [])
    dev_measure.compare(state, {**now, "beam_width": 4}, log.append)
    assert (state.best_bleu, state.best_step, state.stale_evaluations) == (-1.0, 5, 0)
    assert state.measure["beam_width"] == 4 and len(log) == 1


def test_a_checkpoint_of_an_older_version_is_of_no_other_measure(small_data):
    state, log = TrainState(best_bleu=30.0, best_step=5), []
    dev_measure.compare(state, measure(settings(small_data)), log.append)
    assert (state.best_bleu, log) == (30.0, []) and state.measure

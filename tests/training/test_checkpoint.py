"""Checkpoints: what comes back is what was written, or a message; nothing is unpickled."""

import ast
import io
import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from helpers.checkpoints import STATE, are_same, arrays, is_checkpoint_of, write

import tfmann
from tfmann.training import checkpoint, checkpoint_series, named_variables
from tfmann.training.checkpoint import Unreadable
from tfmann.utils.checksummed_json import add_checksum

FILES = ("weights.npz", "optimizer.npz", "state.json")

# --- there and back ---------------------------------------------------------------------------


def test_what_was_written_comes_back_bit_by_bit(tmp_path):
    folder = write(tmp_path, 7)
    assert is_checkpoint_of(folder, 7)
    state = checkpoint.read_state(str(folder))
    assert state.pop("sha256").keys() == {"weights.npz", "optimizer.npz"}
    assert state == {**STATE, "position": [3, 1]}
    assert sorted(os.listdir(tmp_path)) == ["step-00000007"]
    assert sorted(os.listdir(folder)) == sorted(FILES)
    variable = tf.Variable(np.zeros([5, 7], np.float32), name="model/cell/kernel")
    read = checkpoint.read_arrays(str(folder))
    named_variables.assign([variable], {"model/cell/kernel": read["model/cell/kernel"]}, "there")
    assert variable.numpy().tobytes() == arrays(7)["model/cell/kernel"].tobytes()


def test_weights_alone_have_no_optimizer(tmp_path):
    folder = str(tmp_path / "best")
    checkpoint.write(folder, arrays(), None, {})
    assert are_same(checkpoint.read_arrays(folder), arrays())
    with pytest.raises(Unreadable, match=r"optimizer\.npz"):
        checkpoint.read_arrays(folder, "optimizer")


def test_a_checkpoint_takes_the_place_of_an_older_one(tmp_path):
    folder = write(tmp_path, 7, seed=1)
    shutil.copytree(folder, f"{folder}.tmp")  # left by a kill
    write(tmp_path, 7, seed=2)
    assert is_checkpoint_of(folder, 2)
    assert sorted(os.listdir(tmp_path)) == ["step-00000007"]


def test_steps_are_sorted_as_numbers_and_nothing_else_counts(tmp_path):
    assert checkpoint_series.steps(str(tmp_path / "absent")) == []
    for step in (90, 100, 123_456_789):
        write(tmp_path, step)
    for name in ("step-9", "step-00000005.tmp77", "best", "step-0000000x"):
        (tmp_path / name).mkdir()
    assert checkpoint_series.steps(str(tmp_path)) == [90, 100, 123_456_789]
    assert checkpoint_series.latest(str(tmp_path)) == str(tmp_path / "step-123456789")


def test_only_the_last_are_kept_and_no_rubbish(tmp_path):
    for step in (1, 2, 3, 10):
        write(tmp_path, step)
    (tmp_path / "step-00000011.tmp123").mkdir()
    shutil.copytree(tmp_path / "step-00000001", tmp_path / "step-00000001.old")
    checkpoint_series.remove_old(str(tmp_path), 2)
    assert sorted(os.listdir(tmp_path)) == ["step-00000003", "step-00000010"]
    assert checkpoint_series.steps(str(tmp_path)) == [3, 10]


# --- damage -----------------------------------------------------------------------------------


def positions(size):
    """Bytes of a file to damage: both ends, and others spread over it."""
    inside = np.linspace(0, size - 1, 40).astype(int).tolist()
    return sorted({0, 1, size - 2, size - 1, *inside})


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_noticed(name, tmp_path):
    """Or it changes nothing, as 1e-07 written 1E-07."""
    folder = write(tmp_path, 7)
    path, good = folder / name, (folder / name).read_bytes()
    errors = 0
    for position in positions(len(good)):
        for bit in (0, 5, 7):
            bad = bytearray(good)
            bad[position] ^= 1 << bit
            path.write_bytes(bad)
            try:
                assert is_checkpoint_of(folder, 7)
            except Unreadable as error:
                assert name in str(error) or "weights.npz" in str(error)
                errors += 1
    assert errors >= 3 * len(positions(len(good))) - 2
    path.write_bytes(good)
    assert is_checkpoint_of(folder, 7)


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_a_grown_and_a_missing_file_are_noticed(name, tmp_path):
    folder = write(tmp_path, 7)
    path, good = folder / name, (folder / name).read_bytes()
    contents = [good[:size] for size in positions(len(good))]
    for content in [*contents, good + b"x", bytes(len(good)), None]:
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        with pytest.raises(Unreadable, match=name.replace(".", r"\.")):
            is_checkpoint_of(folder, 7)


@pytest.mark.parametrize("content", ["[]", "{}", "1", "null", '"text"', "[" * 100_000, "\xff"])
def test_a_state_of_another_kind_is_noticed(content, tmp_path):
    folder = write(tmp_path, 7)
    (folder / "state.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(Unreadable, match=r"state\.json is missing or damaged"):
        checkpoint.read_state(str(folder))


WRONG = {
    "step": ["12", -1, 1.0, True, None, 1 << 63, {}],
    "position": [7, [], [1], [0, "1"], [0, -1], [0, 1, -1], [0, 1, 2, 3], {"epoch": 0, "batch": 0}],
    "best_bleu": ["1", None, float("nan")],
    "best_step": [-2, "3"],
    "words": [1.5],
    "history": [{}, [1]],
    "measure": [[], "greedy"],
    "between": ["yes"],
    "sha256": [{"weights.npz": 1}, {"../weights.npz": ""}, {"weights": ""}, [], "x"],
}


@pytest.mark.parametrize("key", WRONG)
def test_a_state_with_a_right_seal_and_another_content_is_not_used(key, tmp_path):
    write(tmp_path, 5)
    path = write(tmp_path, 10) / "state.json"
    right = checkpoint.read_state(str(path.parent))
    for value in WRONG[key]:
        path.write_text(json.dumps(add_checksum({**right, key: value})))
        with pytest.raises(Unreadable, match=rf"not the state of a checkpoint: {key} is "):
            checkpoint.read_state(str(path.parent))
        log = []
        assert checkpoint_series.latest(str(tmp_path), log.append).endswith("step-00000005")
        assert len(log) == 1 and "falling back" in log[0]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [("step", 11, "step is 11, expected 10"), ("step", None, "step is missing"),
     ("position", None, "position is missing"), ("best_step", None, "best_step is missing")],
)  # fmt: skip
def test_training_resumes_from_the_last_complete_state(key, value, words, tmp_path):
    more = {"position": [0, 1], "best_step": -1}
    for step in (5, 10):
        folder = checkpoint_series.step_folder(str(tmp_path), step)
        state = {"step": step, **more}
        if step == 10:
            state[key] = value
            state = {name: content for name, content in state.items() if content is not None}
        checkpoint.write(folder, arrays(step), None, state)
    log = []
    latest = checkpoint_series.latest(str(tmp_path), log.append, to_continue=True)
    assert latest.endswith("step-00000005") and words in log[0]
    assert checkpoint_series.latest(str(tmp_path), log.append).endswith("step-00000010")


@pytest.mark.parametrize("name", FILES)
def test_the_checkpoint_before_is_used_and_the_log_says_so(name, tmp_path):
    write(tmp_path, 5)
    path = write(tmp_path, 10) / name
    path.write_bytes(path.read_bytes()[:-3])
    log = []
    assert checkpoint_series.latest(str(tmp_path), log.append) == str(tmp_path / "step-00000005")
    assert len(log) == 1 and f"step-00000010/{name}" in log[0] and "falling back" in log[0]
    (tmp_path / "step-00000005" / "optimizer.npz").unlink()
    with pytest.raises(Unreadable, match="none of the 2 checkpoints in .* can be read"):
        checkpoint_series.latest(str(tmp_path), log.append)


def test_no_checkpoint_is_none(tmp_path):
    assert checkpoint_series.latest(str(tmp_path), pytest.fail) is None
    assert checkpoint_series.latest(str(tmp_path / "absent"), pytest.fail) is None


def test_the_average_is_the_mean_rounded_once(tmp_path):
    stream = np.random.default_rng(2)
    values = (1e6 + stream.normal(size=(5, 4))).astype(np.float32)
    folders = [str(tmp_path / str(i)) for i in range(5)]
    for folder, value in zip(folders, values):
        checkpoint.write(folder, {"a": value}, {"m": value}, {})
    average = checkpoint_series.average(folders)
    assert list(average) == ["a"] and average["a"].dtype == np.float32
    assert np.array_equal(average["a"], values.astype(np.float64).mean(axis=0).astype(np.float32))
    assert np.array_equal(checkpoint_series.average(folders[:1])["a"], values[0])


# --- pickle -----------------------------------------------------------------------------------


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_a_pickle_in_a_checkpoint_is_not_opened(tmp_path, monkeypatch):
    """Even with the right checksums."""
    monkeypatch.chdir(tmp_path)
    content = io.BytesIO()
    np.savez(content, a=np.array([Bomb()], dtype=object))
    assert b"exploded" in content.getvalue()
    for data in (content.getvalue(), pickle.dumps(Bomb())):
        checkpoint.write("step-00000001", {"a": np.zeros([1])}, None, {})
        (tmp_path / "step-00000001" / "weights.npz").write_bytes(data)
        state = json.loads((tmp_path / "step-00000001" / "state.json").read_text())
        state["sha256"]["weights.npz"] = checkpoint._archive_digest("step-00000001/weights.npz")
        del state["sha256_of_this"]
        (tmp_path / "step-00000001" / "state.json").write_text(json.dumps(add_checksum(state)))
        with pytest.raises(Unreadable, match=r"weights\.npz is missing or damaged"):
            checkpoint.read_arrays("step-00000001")
    assert not (tmp_path / "exploded").exists()


def test_nothing_is_unpickled_or_evaluated_anywhere():
    forbidden = {"pickle", "cPickle", "dill", "joblib", "shelve", "marshal", "cloudpickle"}
    loads = 0
    for path in sorted(Path(tfmann.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            where = f"{path}, line {getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import):
                assert not forbidden & {alias.name.split(".")[0] for alias in node.names}, where
            if isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] not in forbidden, where
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            assert called not in ("eval", "exec"), where
            if called in ("np.load", "numpy.load"):
                arguments = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
                assert arguments.get("allow_pickle") == "False", where
                loads += 1
    assert loads >= 1

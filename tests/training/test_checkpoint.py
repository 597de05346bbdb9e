"""Checkpoints: what comes back is what was written, or a message; no moment to fail loses one."""

import ast
import errno
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import tfmann
from tfmann.errors import UserError
from tfmann.training import checkpoint, checkpoint_series, named_variables
from tfmann.training.checkpoint import Unreadable
from tfmann.utils.checksummed_json import add_checksum

FILES = ("weights.npz", "optimizer.npz", "state.json")
STATE = {"step": 7, "history": [{"dev_bleu": 0.1 + 0.2, "dev_ppl": 1e-7}], "position": (3, 1)}


def arrays(seed=0):
    """Weights with every kind of float32 that a sloppy format would change."""
    stream = np.random.default_rng(seed)
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, np.finfo(np.float32).max, 1 / 3]
    return {
        "model/cell/kernel": stream.normal(size=(5, 7)).astype(np.float32),
        "model/cell/scale": np.float32(stream.normal()),
        "model/odd": np.array(odd, np.float32),
        "model/empty": np.zeros([0, 3], np.float32),
    }


def slots(seed=0):
    return {"Adam/iter": np.int64(seed + 3), **{f"Adam/m/{k}": v for k, v in arrays(seed).items()}}


def write(root, step, seed=None):
    seed = step if seed is None else seed
    folder = checkpoint_series.step_folder(str(root), step)
    checkpoint.write(folder, arrays(seed), slots(seed), {**STATE, "step": step})
    return Path(folder)


def are_same(actual, expected):
    """Equal names, types, shapes and bits."""
    assert sorted(actual) == sorted(expected)
    for name, value in expected.items():
        assert actual[name].dtype == value.dtype and actual[name].shape == np.shape(value)
        assert actual[name].tobytes() == value.tobytes(), name
    return True


def is_checkpoint_of(folder, seed):
    """Whether a folder is the checkpoint that `write` made, all of it."""
    state = checkpoint.read_state(str(folder))
    return (
        are_same(checkpoint.read_arrays(str(folder)), arrays(seed))
        and are_same(checkpoint.read_arrays(str(folder), "optimizer"), slots(seed))
        and state["history"] == STATE["history"]
    )


class Variable:
    """What `assign` needs of a TensorFlow variable."""

    def __init__(self, name, value):
        self.name, self.value = f"{name}:0", np.asarray(value)
        self.shape = self.value.shape

    def assign(self, value):
        self.value = np.array(value)


def variables(**values):
    return [Variable(name, value) for name, value in values.items()]


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
    "position": [7, [], [1], [0, "1"], [0, -1], {"epoch": 0, "batch": 0}],
    "best_bleu": ["1", None, float("nan")],
    "best_step": [-2, "3"],
    "words": [1.5],
    "history": [{}, [1]],
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
def test_training_goes_on_from_what_says_where(key, value, words, tmp_path):
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


# --- killed while saving ----------------------------------------------------------------------

# Children of a process without TensorFlow save over an older checkpoint, and die at their n-th
# call to the operating system, n = 0, 1, 2, ... until one of them gets through.
KILLED = """
import itertools, os, sys
import builtins, shutil
from tfmann.training import checkpoint, checkpoint_series, named_variables

def arrays(seed):
    import numpy as np
    return {"a": np.full([3], seed, np.float32)}

root = sys.argv[1]
older, newer = (checkpoint_series.step_folder(root, int(step)) for step in sys.argv[2:])

def save(folder, seed):
    checkpoint.write(folder, arrays(seed), arrays(seed), {"seed": seed})
    checkpoint_series.remove_old(root, 2)

def dying(function, calls, fatal):
    def call(*args, **kwargs):
        if next(calls) == fatal:
            os._exit(9)
        return function(*args, **kwargs)
    return call

def child(fatal):
    calls = itertools.count()
    for module, names in (
        (os, ("makedirs", "rename", "fsync", "open", "close", "unlink", "rmdir", "listdir")),
        (shutil, ("rmtree",)), (builtins, ("open",)), (checkpoint.zipfile, ("ZipFile",)),
    ):
        for name in names:
            setattr(module, name, dying(getattr(module, name), calls, fatal))
    save(newer, 2)
    os._exit(0)

for fatal in itertools.count():
    shutil.rmtree(newer, ignore_errors=True)
    save(older, 1)
    pid = os.fork()
    if not pid:
        child(fatal)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    found = checkpoint_series.latest(root, print)
    seed = checkpoint.read_state(found)["seed"]
    for name in ("weights", "optimizer"):
        assert set(checkpoint.read_arrays(found, name)["a"]) == {seed}, (fatal, name)
    print(status, seed)
    if status == 0:
        break
"""


@pytest.mark.parametrize("older, newer", [(7, 7), (5, 7)])
def test_killed_at_any_call_while_saving(older, newer, tmp_path):
    """The older or the newer checkpoint is whole; killed between two renames, one comes back."""
    result = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), str(older), str(newer)],
        cwd=Path(tfmann.__file__).parent.parent, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    assert len(lines) > 15
    assert [line[0] for line in lines] == ["9"] * (len(lines) - 1) + ["0"]
    seeds = [line[1] for line in lines]
    assert seeds == sorted(seeds) and set(seeds) == {"1", "2"}
    assert sorted(os.listdir(tmp_path)) == sorted({f"step-0000000{i}" for i in (older, newer)})


def test_killed_between_the_renames(tmp_path):
    folder = write(tmp_path, 7)
    folder.rename(f"{folder}.old")
    assert checkpoint_series.latest(str(tmp_path)) == str(folder)
    assert is_checkpoint_of(folder, 7)
    shutil.copytree(folder, f"{folder}.old")  # killed after the second one
    write(tmp_path, 7, seed=8)
    assert is_checkpoint_of(folder, 8) and checkpoint_series.steps(str(tmp_path)) == [7]


def test_what_a_kill_left_is_taken_and_kept_until_the_next_one_stands(tmp_path, monkeypatch):
    folder, log = write(tmp_path, 7), []
    old = f"{folder}.old"
    assert checkpoint.existing_folder(str(folder), log.append) == str(folder) and not log
    folder.rename(old)
    assert checkpoint.existing_folder(str(folder), log.append) == old
    assert len(log) == 1 and str(folder) in log[0] and old in log[0]

    def killed(*paths):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "rename", killed)
        write(tmp_path, 7, seed=8)
    assert is_checkpoint_of(Path(old), 7)
    write(tmp_path, 7, seed=8)
    assert is_checkpoint_of(folder, 8) and os.listdir(tmp_path) == [folder.name]
    absent = str(tmp_path / "absent")
    assert checkpoint.existing_folder(absent, pytest.fail) == absent


# --- no room ----------------------------------------------------------------------------------


def refuse(*args, **kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "where", ["os.fsync", "os.rename", "os.makedirs", "numpy.lib.format.write_array", "json.dump"]
)
def test_a_full_disk_leaves_the_older_checkpoints(where, tmp_path, monkeypatch):
    older, folder = write(tmp_path, 5), write(tmp_path, 7, seed=1)
    monkeypatch.setattr(where, refuse)
    for step in (7, 10):
        with pytest.raises(UserError, match=f"step-{step:08d}: No space left on device.*unchanged"):
            write(tmp_path, step, seed=2)
    monkeypatch.undo()
    assert is_checkpoint_of(older, 5) and checkpoint_series.latest(str(tmp_path)) == str(folder)
    assert is_checkpoint_of(folder, 1)
    assert sorted(os.listdir(tmp_path)) == ["step-00000005", "step-00000007"]


def test_a_really_full_disk(tmp_path):
    """On a file system of 256 KiB, where the second large checkpoint does not fit."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting a file system needs root")
    try:
        folder = write(disk, 5)
        for size in (10_000, 60_000, 200_000):
            large = {"model/large": np.arange(size, dtype=np.float32)}
            try:
                checkpoint.write(str(disk / "step-00000010"), large, large, {})
            except UserError as error:
                assert "No space left on device" in str(error) and size > 10_000
            else:
                assert size == 10_000
            assert sorted(os.listdir(disk)) == ["step-00000005", "step-00000010"]
        assert is_checkpoint_of(folder, 5)
        read = checkpoint.read_arrays(str(disk / "step-00000010"))
        assert len(read["model/large"]) == 10_000
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_place_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(UserError, match="cannot write the checkpoint"):
        checkpoint.write(str(tmp_path / "file" / "step-00000001"), arrays(), None, {})
    assert (tmp_path / "file").read_text() == "kept"


# --- from arrays to variables -----------------------------------------------------------------


def test_assign_sets_everything():
    model = variables(a=np.zeros([2, 3]), b=np.zeros([]))
    named_variables.assign(model, {"a": np.ones([2, 3]), "b": np.float32(4)}, "there")
    assert np.all(model[0].value == 1) and model[1].value == 4


@pytest.mark.parametrize(
    "saved, words",
    [
        ({"a": np.ones([2, 3])}, "b is missing there"),
        ({"a": np.ones([2, 3]), "b": np.ones([]), "c": np.ones([1])}, "c is not in this model"),
        ({"a": np.ones([3, 2]), "b": np.ones([])}, r"a is \[3, 2\] there and \[2, 3\] here"),
        ({"a": np.ones([2, 3]), "b": np.ones([1])}, r"b is \[1\] there and \[\] here"),
        ({f"x{i}": np.ones([1]) for i in range(9)}, r"a is missing there; .*and 8 more"),
    ],
)
def test_assign_refuses_another_models_and_sets_nothing(saved, words):
    model = variables(a=np.zeros([2, 3]), b=np.zeros([]))
    with pytest.raises(UserError, match=f"there is another model's: .*{words}"):
        named_variables.assign(model, saved, "there")
    assert not any(np.any(variable.value) for variable in model)


def test_assign_fitting_sets_what_fits_and_lists_the_rest():
    model = variables(a=np.zeros([2]), b=np.zeros([3]), new=np.zeros([4]))
    saved = {"a": np.ones([2]), "b": np.ones([3]), "gone": np.ones([5])}
    matched, fresh = named_variables.assign_matching(model, saved, "there")
    assert (matched, fresh) == (["a", "b"], ["new"])
    assert [float(variable.value.sum()) for variable in model] == [2, 3, 0]


@pytest.mark.parametrize(
    "saved, words",
    [
        ({"a": np.ones([2]), "b": np.ones([4])}, r"b is \[4\] there and \[3\] here"),
        ({"other": np.ones([2])}, "no weight there has a name of this model"),
        ({}, "no weight there"),
    ],
)
def test_assign_fitting_refuses_what_cannot_fit_and_sets_nothing(saved, words):
    model = variables(a=np.zeros([2]), b=np.zeros([3]))
    with pytest.raises(UserError, match=f"there cannot start this model: {words}"):
        named_variables.assign_matching(model, saved, "there")
    assert not any(np.any(variable.value) for variable in model)


def test_two_variables_of_one_name_are_a_mistake_of_ours():
    with pytest.raises(ValueError, match="same name"):
        named_variables.by_name([*variables(a=1), *variables(a=2)])


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

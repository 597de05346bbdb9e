"""Checkpoints of invented arrays, and whether a folder is one of them."""

from pathlib import Path

import numpy as np

from tfmann.training import checkpoint, checkpoint_series

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
    """Returns whether a folder is the whole checkpoint that `write` made."""
    state = checkpoint.read_state(str(folder))
    return (
        are_same(checkpoint.read_arrays(str(folder)), arrays(seed))
        and are_same(checkpoint.read_arrays(str(folder), "optimizer"), slots(seed))
        and state["history"] == STATE["history"]
    )

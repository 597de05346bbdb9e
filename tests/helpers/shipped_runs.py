"""Runs of the shipped configurations, shrunk to seconds."""

from pathlib import Path

from helpers import tiny_runs

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


def training_command(name, data, out, **changes):
    """The command line that trains a shipped tiny configuration, made smaller."""
    path = tiny_runs.ROOT / "hparams" / "tiny" / f"{name}.json"
    return [f"--hparams_path={path}", *tiny_runs.path_flags(data, out, **{**SHRUNK, **changes})]


def read(path):
    return Path(path).read_text(encoding="utf-8").splitlines()

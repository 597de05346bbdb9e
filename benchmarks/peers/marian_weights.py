"""One RNNSearch in two programs: trains it here and writes its weights as a model of Marian.

    python -m benchmarks.peers.marian_weights train --corpus_dir=DIR --vocab_prefix=P --out_dir=O
    python -m benchmarks.peers.marian_weights convert --out_dir=O --template=T --output=F
    python -m benchmarks.peers.marian_weights shortlist --lexicon=L --output=F

Marian's `--type s2s` is RNNSearch with two GRUs a step, and differs from ours in two points, which
`train` removes: the first word follows an embedding of zeros (that of `<s>` is kept at zero), and
the second GRU multiplies the bias of its candidate by the reset gate (this bias is kept at zero).
Then both compute the same function, so that decoding is compared with one model, and Marian need
not be trained for hours.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from benchmarks.peers import systems
from tfmann.data.vocab import EOS_ID, SOS, SOS_ID, UNK_ID

_TARGET_EMBEDDING = "model/target_embedding"
_SECOND_BIAS = "model/cell/state_gru/bias"
_CELL = "model/cell"
_ENCODER = "model/encoder/layer_0"


def free_weights(name: str, shape: Sequence[int]) -> np.ndarray | None:
    """Returns 1 for the weights of a variable that are trained and 0 for those kept at zero.

    None means all of them.
    """
    free = np.ones(shape, np.float32)
    if name == _TARGET_EMBEDDING:
        free[SOS_ID] = 0.0
    elif name == _SECOND_BIAS:
        free[2 * shape[0] // 3 :] = 0.0
    else:
        return None
    return free


def convert(ours: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns Marian's weights by name, from ours.

    Rows of embeddings are in the order of corpus.SPECIALS: `</s>`, `<unk>`, then the words.
    """
    target = _marian_rows(ours[_TARGET_EMBEDDING])
    words, context = target.shape[1], ours[f"{_CELL}/initial_kernel"].shape[0]
    readout = ours[f"{_CELL}/readout_kernel"]
    state = len(readout) - words - context
    weights = {
        "encoder_Wemb": _marian_rows(ours["model/source_embedding"]),
        "decoder_Wemb": target,
        "decoder_ff_state_W": ours[f"{_CELL}/initial_kernel"],
        "decoder_ff_state_b": ours[f"{_CELL}/initial_bias"],
        "decoder_W_comb_att": ours[f"{_CELL}/query_kernel"],
        "decoder_Wc_att": ours[f"{_CELL}/memory_kernel"],
        "decoder_U_att": ours[f"{_CELL}/score_vector"][:, None],
        "decoder_b_att": np.zeros(len(ours[f"{_CELL}/score_vector"])),
        "decoder_ff_logit_l1_W0": readout[state : state + words],  # from y
        "decoder_ff_logit_l1_W1": readout[:state],  # from s
        "decoder_ff_logit_l1_W2": readout[state + words :],  # from c
        "decoder_ff_logit_l2_Wt": _marian_rows(ours["model/projection_kernel"].T),
        "decoder_ff_logit_l2_b": np.zeros(len(target)),
    }
    for part in range(3):
        weights[f"decoder_ff_logit_l1_b{part}"] = np.zeros(readout.shape[1])
    for prefix, name in (
        ("encoder_bi", f"{_ENCODER}/forward"),
        ("encoder_bi_r", f"{_ENCODER}/backward"),
        ("decoder_cell1", f"{_CELL}/query_gru"),
        ("decoder_cell2", f"{_CELL}/state_gru"),
    ):
        for letter, array in (("U", "recurrent_kernel"), ("W", "kernel"), ("b", "bias")):
            update, reset, candidate = np.split(ours[f"{name}/{array}"], 3, axis=-1)
            weights[f"{prefix}_{letter}"] = np.concatenate([reset, update], axis=-1)
            weights[f"{prefix}_{letter}x"] = candidate
    return {name: np.atleast_2d(np.asarray(array, np.float32)) for name, array in weights.items()}


def _marian_rows(rows: np.ndarray) -> np.ndarray:
    """Reorders rows of `<unk>`, `<s>`, `</s>`, words to `</s>`, `<unk>`, words."""
    return np.concatenate([rows[[EOS_ID, UNK_ID]], rows[EOS_ID + 1 :]])


def write_model(weights: Mapping[str, np.ndarray], template: Path, output: Path) -> None:
    """Writes a model of Marian: the settings of `template`, a model that it wrote, and weights.

    Raises:
      SystemExit: its weights have other names or shapes.
    """
    with np.load(template) as archive:
        shapes = {name: archive[name].shape for name in archive.files}
        settings = {n: archive[n] for n in archive.files if n.startswith("special:")}
    for name in sorted((shapes.keys() - settings.keys()) | weights.keys()):
        expected = shapes.get(name, "no array")
        found = weights[name].shape if name in weights else "no array"
        if found != expected:
            raise SystemExit(f"{template}: {name} is {expected} there, {found} here")
    arrays: dict[str, Any] = {**weights, **settings}  # savez has parameters of other types too
    np.savez(output, **arrays)


def train(flags: argparse.Namespace) -> None:
    """Trains in `out_dir`, as `python -m tfmann.nmt` with ours.json and the cell `rnnsearch`."""
    from tfmann import config
    from tfmann.cli.train import train as train_run
    from tfmann.training.named_variables import by_name
    from tfmann.training.train_step import TrainStep

    update = TrainStep.update

    def constrained_update(self: TrainStep, *args: Any) -> Any:
        result = update(self, *args)
        for name, variable in by_name(self.variables).items():
            free = free_weights(name, variable.shape)
            if free is not None:
                variable.assign(variable * free)
        return result

    TrainStep.update = constrained_update  # type: ignore[method-assign, assignment]
    settings = {
        **systems.RNNSEARCH,
        "train_prefix": str(flags.corpus_dir / "train"),
        "dev_prefix": str(flags.corpus_dir / "val"),
        "vocab_prefix": str(flags.vocab_prefix),
        "precision": flags.precision,
        "num_train_steps": flags.steps,
        "steps_per_external_eval": flags.steps,
    }
    hparams = config.make(settings, str(systems.PEERS / "ours.json"))
    train_run(hparams, str(flags.out_dir), print)


def write_marian(flags: argparse.Namespace) -> None:
    """Writes a checkpoint of `train` as a model of Marian."""
    from tfmann.training import checkpoint

    folder = checkpoint.existing_folder(str(flags.ckpt or flags.out_dir), print)
    arrays = checkpoint.read_arrays(folder)
    write_model(convert(arrays), flags.template, flags.output)


def write_shortlist(flags: argparse.Namespace) -> None:
    """Writes the lexicon of `tfmann shortlist` as Marian reads it: `TARGET SOURCE PROBABILITY`.

    The frequent words, which ours has under the source `<s>`, are the first of Marian's vocabulary.
    """
    from tfmann.data.lexicon import iter_entries

    entries = (entry for entry in iter_entries(flags.lexicon) if entry.source != SOS)
    lines = [f"{entry.target} {entry.source} {entry.weight:g}\n" for entry in entries]
    flags.output.write_text("".join(lines), "utf-8")


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(required=True)
    paths: dict[Any, tuple[str, ...]] = {
        train: ("corpus_dir", "vocab_prefix", "out_dir"),
        write_marian: ("out_dir", "template", "output"),
        write_shortlist: ("lexicon", "output"),
    }
    for name, run in zip(("train", "convert", "shortlist"), paths):
        command = kinds.add_parser(name)
        command.set_defaults(run=run)
        for path in paths[run]:
            command.add_argument(f"--{path}", type=Path, required=True)
        if run is train:
            command.add_argument("--steps", type=int, default=900)
            command.add_argument("--precision", default="mixed_bfloat16")
        elif run is write_marian:
            command.add_argument("--ckpt", type=Path, help="of out_dir; the best if not given")
    flags = parser.parse_args(argv)
    flags.run(flags)


if __name__ == "__main__":
    main()

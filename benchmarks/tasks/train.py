"""Training of one cell on one task, and its test on sizes seen in training and on greater ones.

    python -m benchmarks.tasks --task=copy --cell=ntm --seed=1 --out=DIR

The setup follows Collier & Beel 2018 (arXiv:1807.08518) and their code: one layer of 100 LSTM units
as the controller, a memory of 128 slots of 20 numbers, one read and one write head, Adam at 0.001,
gradients clipped to a norm of 50, batches of 32. The loss is the cross-entropy of an answer, summed
over all its bits, per sequence. They trained ten models for 31,250 updates; `Task.steps` is the
number of updates here. Unlike theirs, an NTM's addresses begin at the first slot: of three copying
NTMs whose addresses began spread over all slots, two never learnt to use single slots, stored a
sequence in the memory as a whole, and failed on unseen lengths (--address_start=0). The DNC is
trained with 32 slots, four times as fast, and has 128 in the test on unseen sizes. The LSTM control
has about as many weights; Graves et al. had three layers of 256 units (--num_layers=3
--num_units=256). The variants of a cell (`model.VARIANTS`) have its sizes and some more weights. No
run has dropout, not even the one that Franke et al. 2018 have besides reading by content alone.

Every 250 updates the model answers 640 validation sequences of trained sizes. The weights that did
best on them are tested at the end, with 192 sequences of each size. The error is
`generate.wrong_bits`.

Writes DIR/TASK-CELL-SEED.jsonl, one line, at the end. The same command continues a run that was
killed from its last evaluation; with greater --steps it also continues a finished run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import zipfile
from pathlib import Path
from typing import Any, Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from benchmarks.tasks import generate  # noqa: E402
from benchmarks.tasks.model import CELLS, CONTROL, VARIANTS, TrainStep  # noqa: E402
from tfmann.config import HParams  # noqa: E402
from tfmann.errors import UsageError, UserError  # noqa: E402
from tfmann.training.named_variables import assign, by_name  # noqa: E402
from tfmann.utils.files import atomic_write  # noqa: E402
from tfmann.utils.provenance import provenance  # noqa: E402

_COMMON: dict[str, Any] = {
    "encoder_type": "memory",
    "bridge": "zero",
    "num_layers": 1,
    "dropout": 0.0,
    "init_op": "glorot_uniform",
    "optimizer": "adam",
    "learning_rate": 1e-3,
    "max_gradient_norm": 50.0,
    "batch_size": 32,
}
_SLOTS = 128  # of a memory in a test: a copy of 120 needs nearly all
_OWN: dict[str, dict[str, Any]] = {
    "ntm": {
        "num_units": 100,
        "num_memory_locations": _SLOTS,
        "memory_unit_size": 20,
        "address_start": 10.0,
    },
    "dnc": {"num_units": 100, "num_memory_locations": 32, "memory_unit_size": 20},
    "lstm": {"num_units": 132},
}
_SIZES = ("num_units", "num_layers", "num_memory_locations", "memory_unit_size")
_STARTS = ("address_start",)
_CONVERGED = 0.1  # wrong bits a sequence, on validation


def configuration(task: str, cell: str, seed: int, **changes: Any) -> dict[str, Any]:
    """Returns all that determines the result of a run, except its length."""
    base, own = VARIANTS.get(cell, (cell, {}))
    settings = {**_COMMON, **_OWN[base], **own, "random_seed": seed, **changes}
    settings["embedding_size"] = generate.TASKS[task].input_width
    if cell == CONTROL:
        del settings["encoder_type"]  # the control reads no source by itself
    else:
        settings["cell"] = base
    return {"task": task, "cell": cell, "settings": settings}


class Run:
    """The state of a training: weights, the optimizer's slots, the learning curve, the best."""

    def __init__(self, config: dict[str, Any], jit_compile: bool = False):
        """Starts from fresh weights; `jit_compile` as in `TrainStep`."""
        self.config = config
        self.task = generate.TASKS[config["task"]]
        self.hparams = HParams(**config["settings"])
        self.learner = TrainStep(self.hparams, config["cell"], self.task, jit_compile)
        self.validation = self.task.validation()
        self.step, self.seconds = 0, 0.0  # seconds of CPU time, of training alone
        self.curve: list[dict[str, float]] = []
        self.best = {"wrong_bits": np.inf, "loss": np.inf, "step": -1}
        self.best_weights = self._weights()

    def train(self, steps: int) -> float:
        """Makes updates up to `steps`; returns their mean loss, in nats a sequence."""
        begun, losses = time.process_time(), []
        while self.step < steps:
            seed, rows = self.hparams.random_seed, self.hparams.batch_size
            batch = self.task.training(seed, self.step, rows)
            losses.append(self.learner.update(*map(tf.convert_to_tensor, batch)))
            self.step += 1
        loss = float(tf.reduce_mean(losses))
        if not np.isfinite(loss):
            raise UserError(f"the loss is {loss} before update {self.step}: training stops")
        self.seconds += time.process_time() - begun
        return loss

    def evaluate(self, train_loss: float) -> dict[str, float]:
        """Adds a point to the learning curve, and keeps the weights if they are the best."""
        measured = [_measure(self.learner, batch) for batch in self.validation]
        loss, wrong = (float(np.mean(values)) for values in zip(*measured))
        point = {
            "step": self.step,
            "train_loss": train_loss,
            "loss": loss,
            "wrong_bits": wrong,
            "cpu_seconds": round(self.seconds, 2),
        }
        self.curve.append(point)
        if (wrong, loss) < (self.best["wrong_bits"], self.best["loss"]):
            self.best = {"wrong_bits": wrong, "loss": loss, "step": self.step}
            self.best_weights = self._weights()
        return point

    def test(self, rows: int) -> list[dict[str, Any]]:
        """Measures the wrong bits of the best weights, for every size of the task's sweeps."""
        learners = {True: self.learner, False: self._grown()}
        for learner in learners.values():
            assign(learner.variables, self.best_weights, "the best weights")
        results = {}
        for size in dict.fromkeys(size for sweep in self.task.sweeps for size in sweep.sizes):
            batch = self.task.test(size, rows)
            bits = batch.mask[:, 0].sum() * batch.targets.shape[-1]
            wrong = _measure(learners[self.task.trained_on(size)], batch)[1]
            results[size] = {"size": list(size), "bits": int(bits), "wrong_bits": wrong}
        return list(results.values())

    def save(self, path: str) -> None:
        """Writes the checkpoint next to `path` and renames it to `path`."""
        state = {
            "config": self.config,
            "step": self.step,
            "seconds": self.seconds,
            "curve": self.curve,
            "best": self.best,
        }
        slots = by_name(self.learner.optimizer.variables())
        parts = {
            "weights": self._weights(),
            "best": self.best_weights,
            "slots": {name: slot.numpy() for name, slot in slots.items()},
        }
        arrays = {f"{part}:{name}": v for part, some in parts.items() for name, v in some.items()}
        with atomic_write(path) as stream:
            np.savez(stream, state=np.array(json.dumps(state)), **arrays)

    def restore(self, path: str) -> None:
        """Continues from a checkpoint.

        Raises:
          UsageError: it is of a run with other settings.
          UserError: it is damaged.
        """
        state, parts = _read(path)
        if state["config"] != self.config:
            raise UsageError(f"{path} is of a run with other settings: {state['config']}")
        assign(self.learner.variables, parts["weights"], path)
        assign(self.learner.optimizer.variables(), parts["slots"], path)
        self.step, self.seconds = state["step"], state["seconds"]
        self.curve, self.best, self.best_weights = state["curve"], state["best"], parts["best"]

    def _grown(self) -> TrainStep:
        """Returns the model for unseen sizes; no weight of a DNC depends on its memory's length.

        Sizes seen in training keep the memory of the training: a model trained with 32 slots reads
        less reliably among 128.
        """
        if self.hparams.cell != "dnc" or self.hparams.num_memory_locations >= _SLOTS:
            return self.learner
        larger = self.hparams.replace(num_memory_locations=_SLOTS)
        return TrainStep(larger, self.config["cell"], self.task)

    def _weights(self) -> dict[str, np.ndarray]:
        return {name: v.numpy() for name, v in by_name(self.learner.variables).items()}


def _read(path: str) -> tuple[dict[str, Any], dict[str, dict[str, np.ndarray]]]:
    """Reads the state and the arrays of a checkpoint, the arrays by part and name."""
    parts: dict[str, dict[str, np.ndarray]] = {"weights": {}, "best": {}, "slots": {}}
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
            state = json.loads(str(archive["state"]))
            for key in archive.files:
                part, _, name = key.partition(":")
                if name:
                    parts[part][name] = archive[key]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{path} cannot be read ({error}): remove it to start again") from None
    return state, parts


def _measure(learner: TrainStep, batch: generate.Batch) -> tuple[float, float]:
    """Computes the loss and the wrong bits of a batch."""
    loss, logits = learner.evaluate(*batch)
    return float(loss), generate.wrong_bits(logits.numpy(), batch)


def run(
    config: dict[str, Any],
    steps: int,
    out: str,
    steps_per_eval: int = 250,
    test_rows: int = 192,
    jit_compile: bool = False,
    log: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Trains up to `steps` updates, or continues to them; returns and writes the record."""
    name = f"{config['task']}-{config['cell']}-{config['settings']['random_seed']}"
    record_path, path = Path(out) / f"{name}.jsonl", str(Path(out) / f"{name}.npz")
    if record_path.exists():
        record = json.loads(record_path.read_text("utf-8"))
        if record["config"] == config and record["steps"] >= steps:
            log(f"{record_path} exists already")
            return record
    os.makedirs(out, exist_ok=True)
    state = Run(config, jit_compile)
    if os.path.exists(path):
        state.restore(path)
        log(f"{name}: continues after {state.step} updates")
    while state.step < steps:
        loss = state.train(min(steps, (state.step // steps_per_eval + 1) * steps_per_eval))
        point = state.evaluate(loss)
        state.save(path)
        log(
            f"{name}: update {point['step']} of {steps}, loss {loss:.3f}, validation "
            f"{point['loss']:.3f}, wrong bits {point['wrong_bits']:.3f}, "
            f"{1000 * state.seconds / state.step:.1f} CPU ms an update"
        )
    record = {**_record(state, test_rows), "jit_compile": jit_compile}
    with atomic_write(record_path) as stream:
        stream.write((json.dumps(record) + "\n").encode())
    for tested in record["test"]:
        log(f"{name}: size {tested['size']}: {tested['wrong_bits']:.3f} of {tested['bits']} bits")
    return record


def _record(state: Run, test_rows: int) -> dict[str, Any]:
    """Returns the record of a run that has ended."""
    solved = [point["step"] for point in state.curve if point["wrong_bits"] < _CONVERGED]
    return {
        "benchmark": "learning-tasks",
        "config": state.config,
        "parameters": sum(int(np.prod(v.shape)) for v in state.learner.variables),
        "steps": state.step,
        "cpu_seconds": round(state.seconds, 1),
        "converged_at": solved[0] if solved else None,  # first update below _CONVERGED
        "best": state.best,
        "test": state.test(test_rows),
        "curve": state.curve,
        **provenance(),
    }


def main(argv: list[str] | None = None) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.tasks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--task", choices=generate.TASKS, required=True)
    parser.add_argument("--cell", choices=(*CELLS, *VARIANTS), required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, help="updates; by task if not given")
    parser.add_argument("--out", required=True, help="folder of checkpoint and record")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--jit_compile",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="let XLA compile the update: 1.6 (NTM) to 2.7 times (DNC) as fast",
    )
    for keys, kind in ((_SIZES, int), (_STARTS, float)):
        for key in keys:
            parser.add_argument(f"--{key}", type=kind, help="as in tfmann")
    args = parser.parse_args(argv)
    tf.get_logger().setLevel("ERROR")  # hides that XLA compiles every length, as it must
    tf.config.threading.set_intra_op_parallelism_threads(args.threads)
    tf.config.threading.set_inter_op_parallelism_threads(args.threads)
    options = {key: getattr(args, key) for key in (*_SIZES, *_STARTS)}
    changes = {key: value for key, value in options.items() if value is not None}
    try:
        config = configuration(args.task, args.cell, args.seed, **changes)
        steps = args.steps or generate.TASKS[args.task].steps
        run(config, steps, args.out, jit_compile=args.jit_compile)
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0

"""The training loop: updates, and what is due between them."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable

import tensorflow as tf
from tqdm import tqdm

from tfmann.corpus.ahead import ahead
from tfmann.corpus.pipeline import Position, Training
from tfmann.errors import UserError
from tfmann.hparams import HParams
from tfmann.training import checkpoint
from tfmann.training.optimizer import learning_rate
from tfmann.training.step import Learner, Update
from tfmann.training.validate import perplexity


@dataclasses.dataclass
class Run:
    """How far a run is: all of it goes into a checkpoint, and nothing else decides what follows."""

    step: int = 0
    position: Position = Position()
    best_bleu: float = -1.0
    best_step: int = -1
    stale_evaluations: int = 0  # since the best one
    rate_halvings: int = 0  # of `decay_scheme` plateau
    train_seconds: float = 0.0  # updates only
    words: int = 0  # target words seen
    history: list[dict[str, Any]] = dataclasses.field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """JSON types only."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Run:
        """Inverse of `as_dict`; keys of the checkpoint itself are passed over."""
        names = [field.name for field in dataclasses.fields(cls)]
        known = {name: values[name] for name in names if name in values}  # older ones have fewer
        return cls(**{**known, "position": Position(*known["position"])})


@dataclasses.dataclass
class Hooks:
    """What the loop calls; of several workers, the chief's alone do something."""

    log: Callable[[str], None]
    on_stats: Callable[[int, dict[str, float]], None]
    evaluate: Callable[[Run], float]  # dev BLEU
    on_best: Callable[[Run], None]


class Stopped(UserError):
    """The run was asked to stop; it has saved and can go on."""

    exit_status = 143


class Meter:
    """Sums since the last line of statistics; reads the device only when asked for the line."""

    def __init__(self) -> None:
        """Starts at zero."""
        self._updates: list[Update] = []
        self.words = 0
        self._since = time.perf_counter()

    def add(self, update: Update, words: int) -> None:
        """Remembers an update."""
        self._updates.append(update)
        self.words += words

    def read(self) -> dict[str, float]:
        """Perplexity, gradient norm, words/s and seconds since the last reading."""
        total = float(tf.add_n([u.cross_entropy for u in self._updates]))
        norm = float(self._updates[-1].gradient_norm)
        seconds = time.perf_counter() - self._since
        mean = total / max(1, self.words)
        stats = {
            "perplexity": perplexity(mean),
            "gradient_norm": norm,
            "words_per_second": self.words / seconds,
            "step_seconds": seconds / len(self._updates),
            "seconds": seconds,
        }
        self.reset()
        return stats

    def reset(self) -> None:
        """Begins anew, e.g. after something that was no training."""
        self._updates, self.words, self._since = [], 0, time.perf_counter()

    @property
    def empty(self) -> bool:
        """Whether no update was added."""
        return not self._updates


def train(learner: Learner, data: Training, run: Run, root: str, hooks: Hooks) -> None:
    """Trains until `num_train_steps`, or until dev BLEU has not risen for long enough.

    Args:
      learner: model and optimizer; set from the checkpoint that `run` came from.
      data: training batches.
      run: where the run stands; changed in place.
      root: folder of the checkpoints.
      hooks: what to call.

    Raises:
      UserError: loss, gradient or weights are not finite; what is on disk is from before.
      Stopped: SIGTERM or SIGINT came; the state is saved.
    """
    h = learner.hparams
    evaluate_every, save_every = _periods(h)
    meter, bar = Meter(), _bar(h, run, shown=learner.workers.chief)

    def due(every: int) -> bool:
        return run.step % every == 0 or run.step == h.num_train_steps

    def settle() -> None:
        """Accounts for the updates since the last line; refuses to go on from a broken one."""
        _refuse_non_finite(learner, run, root)
        if not meter.empty:
            run.words += meter.words
            stats = meter.read()
            run.train_seconds += stats.pop("seconds")
            _report(h, run, stats, hooks, bar)

    def asked() -> bool:
        return learner.workers.any(bool(stop))

    with _asked_to_stop() as stop, bar:
        batches = ahead(data.batches(run.position))
        while run.step < h.num_train_steps and not _out_of_patience(h, run):
            batch, run.position = next(batches)
            rate = learning_rate(h, run.step, run.rate_halvings)
            meter.add(learner.update(batch, run.step, rate), int(batch.whole[0]))
            run.step += 1
            bar.update(1)
            stopping = asked()  # once: a signal between two looks would save what is not settled
            if due(h.steps_per_stats) or due(evaluate_every) or due(save_every) or stopping:
                settle()
            if due(evaluate_every):
                _evaluate(learner, run, hooks)
                _halve_rate(h, run, hooks.log)
            saving = due(evaluate_every) or due(save_every)
            if saving or stopping:
                save(learner, run, root, between=not saving)
                meter.reset()
                if asked():  # and so no worker ends before the chief has saved
                    raise Stopped(f"stopped at step {run.step}; the same command goes on there")
    if run.step < h.num_train_steps:
        hooks.log(f"no better dev bleu in {run.stale_evaluations} evaluations: training ends here")


def _periods(hparams: HParams) -> tuple[int, int]:
    """Updates between two evaluations, and between two saves that no evaluation brings."""
    evaluate_every = hparams.steps_per_external_eval or 10 * hparams.steps_per_stats
    return evaluate_every, hparams.steps_per_checkpoint or evaluate_every


def keep_last(hparams: HParams, root: str) -> list[int]:
    """`checkpoint.keep_last`, as the settings have it; returns the steps that are kept."""

    def due(step: int) -> bool:
        at_period = any(step % every == 0 for every in _periods(hparams))
        return step <= hparams.num_train_steps and (at_period or step == hparams.num_train_steps)

    return checkpoint.keep_last(root, hparams.num_keep_ckpts, due)


def save(learner: Learner, run: Run, root: str, between: bool = False) -> None:
    """Writes the checkpoint of this step and removes old ones; of several workers, the chief.

    One that is made `between` the steps that are due, for being asked to stop, goes with the next:
    the last ones, of which an average is made, are those of a run that was not stopped.
    """
    kept = learner.kept_arrays()
    if not learner.workers.chief:
        return
    folder = checkpoint.folder_of_step(root, run.step)
    checkpoint.write(
        folder,
        learner.weight_arrays(),
        learner.optimizer_arrays(),
        {**run.as_dict(), "between": True} if between else run.as_dict(),
        kept,
    )
    keep_last(learner.hparams, root)


def _evaluate(learner: Learner, run: Run, hooks: Hooks) -> None:
    bleu = learner.workers.of_chief(hooks.evaluate(run))
    if bleu > run.best_bleu:
        run.best_bleu, run.best_step, run.stale_evaluations = bleu, run.step, 0
        hooks.on_best(run)
    else:
        run.stale_evaluations += 1


def _halve_rate(hparams: HParams, run: Run, log: Callable[[str], None]) -> None:
    """Halves the rate where dev BLEU has stood still for `plateau_patience` evaluations."""
    stale = run.stale_evaluations
    if hparams.decay_scheme == "plateau" and stale and stale % hparams.plateau_patience == 0:
        run.rate_halvings += 1
        log(f"no better dev bleu in {stale} evaluations: the learning rate is halved")


def _out_of_patience(hparams: HParams, run: Run) -> bool:
    return 0 < hparams.early_stopping_patience <= run.stale_evaluations


def _refuse_non_finite(learner: Learner, run: Run, root: str) -> None:
    """Refuses to go on where an update was not finite, or has left weights that are not."""
    step = int(learner.bad_step.numpy())
    if step >= 0:
        raise diverged("loss or gradient is", step, root)
    if not learner.finite():
        raise diverged("a weight is", run.step, root)


def diverged(what: str, step: int, root: str) -> UserError:
    """What to say, and to do, where `what` not finite at a step of the run in `root`.

    Its checkpoint may be finite and yet have weights that no loss can be computed with: an update
    can save them before the next one looks. No lower rate helps who goes on from there.
    """
    folder = checkpoint.folder_of_step(root, step)
    if os.path.exists(folder):
        where = f"To go on from {folder} ends the same way: remove it, to begin further back."
    else:
        where = "The checkpoints are from before; if one of them still ends here, remove it."
    return UserError(
        f"{what} not finite at step {step}. {where} A lower learning_rate or max_gradient_norm "
        "usually helps; so does looking at the training text for broken lines."
    )


def _report(
    hparams: HParams, run: Run, stats: dict[str, float], hooks: Hooks, bar: tqdm
) -> None:
    stats["learning_rate"] = learning_rate(hparams, run.step - 1, run.rate_halvings)
    best = f" best bleu {run.best_bleu:.2f} at {run.best_step}" if run.best_step >= 0 else ""
    left = (hparams.num_train_steps - run.step) * stats["step_seconds"]
    line = (
        f"step {run.step} lr {stats['learning_rate']:.4g} step-time {stats['step_seconds']:.3f}s "
        f"words/s {stats['words_per_second']:.0f} ppl {stats['perplexity']:.2f} "
        f"gN {stats['gradient_norm']:.2f}{best}, {_clock(left)} of updates left"
    )
    bar.set_postfix_str(
        f"words/s {stats['words_per_second']:.0f} ppl {stats['perplexity']:.2f}", refresh=False
    )
    hooks.log(line)
    hooks.on_stats(run.step, stats)


def _clock(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f}s"
    minutes = int(seconds // 60)
    return f"{minutes // 60}h{minutes % 60:02d}m" if minutes >= 60 else f"{minutes}m"


def _bar(hparams: HParams, run: Run, shown: bool) -> tqdm:
    return tqdm(
        total=hparams.num_train_steps,
        initial=run.step,
        unit="step",
        desc="training",
        disable=not (shown and sys.stderr.isatty()),
        dynamic_ncols=True,
    )


class _Flag:
    """True once a signal came."""

    def __init__(self) -> None:
        self.set = False

    def __bool__(self) -> bool:
        return self.set


@contextmanager
def _asked_to_stop() -> Iterator[_Flag]:
    """Turns SIGTERM and the first SIGINT into a flag that the loop looks at."""
    flag = _Flag()

    def on_signal(number: int, frame: Any) -> None:
        del frame
        flag.set = True
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a second one interrupts

    kept = {}
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            kept[number] = signal.signal(number, on_signal)
    except ValueError:  # not in the main thread: signals are somebody else's there
        pass
    try:
        yield flag
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)

"""The training loop: updates, and the evaluations and checkpoints that are due between them."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
from typing import Callable

from tqdm import tqdm

from tfmann.config import TrainingSettings
from tfmann.data.batching import TrainingBatches
from tfmann.data.prefetch import prefetch
from tfmann.errors import UserError
from tfmann.training import checkpoint, checkpoint_series
from tfmann.training.optimizer import learning_rate
from tfmann.training.stop_signals import catch_stop_signals
from tfmann.training.train_state import TrainState
from tfmann.training.train_step import TrainStep
from tfmann.training.update_statistics import Meter, log_line, progress_bar
from tfmann.training.worker_sync import Workers


@dataclasses.dataclass
class Hooks:
    """The functions that the loop calls; of several workers, only the chief's do anything."""

    log: Callable[[str], None]
    on_stats: Callable[[int, dict[str, float]], None]
    evaluate: Callable[[TrainState], float]  # dev BLEU
    on_best: Callable[[TrainState], None]
    show: Callable[[int], None]  # what the last evaluation saw, when its step is saved


class Stopped(UserError):
    """A signal asked the run to stop; it has saved and can be continued.

    Attributes:
      exit_status: 128 plus the number of the signal, as in shells.
    """

    def __init__(self, message: str, number: int = signal.SIGTERM):
        """Takes the message and the signal."""
        super().__init__(message)
        self.exit_status = 128 + number


class Diverged(UserError):
    """A run has values that are not finite.

    Attributes:
      subject: which, and a verb.
    """

    def __init__(self, message: str, subject: str):
        """Takes the message and its subject."""
        super().__init__(message)
        self.subject = subject


def train(
    train_step: TrainStep, data: TrainingBatches, state: TrainState, root: str, hooks: Hooks
) -> None:
    """Trains until `num_train_steps`, or until dev BLEU has not risen for long enough.

    Args:
      train_step: model and optimizer, with the values of the checkpoint that `state` came from.
      data: training batches.
      state: the progress of the run; changed in place.
      root: folder of the checkpoints.
      hooks: the functions to call.

    Raises:
      UserError: loss, gradient or weights are not finite; the checkpoints are older.
      Stopped: SIGTERM, SIGINT or SIGHUP came; the state is saved.
    """
    h, workers = train_step.hparams, train_step.workers
    evaluate_every, save_every = _periods(h)
    meter, bar = Meter(), progress_bar(h, state, visible=workers.chief)
    first_step = state.step

    def due(every: int) -> bool:
        return state.step % every == 0 or state.step == h.num_train_steps

    with catch_stop_signals() as stop, bar:
        if state.step and due(evaluate_every) and _evaluation_was_killed(state, workers):
            _evaluate_saved(train_step, state, root, hooks)
            meter.reset()  # its seconds are of updates
        batches = prefetch(data.batches(state.position))
        while not has_ended(h, state):
            batch, state.position = next(batches)
            rate = learning_rate(h, state.step, state.rate_halvings)
            compiling = state.step == first_step
            meter.add(train_step.update(batch, state.step, rate), int(batch.totals[0]))
            state.step += 1
            if compiling:
                bar.unpause()  # the bar's estimate leaves the time to compile out
            bar.update(1)
            # read once: what is saved must be reported first
            stopping = workers.reduce_any(bool(stop))
            if due(h.steps_per_stats) or due(evaluate_every) or due(save_every) or stopping:
                _refuse_non_finite(train_step, state, root)
                _report(h, state, meter, hooks, bar)
            if due(evaluate_every):
                _evaluate_saved(train_step, state, root, hooks)
            elif due(save_every) or stopping:
                save(train_step, state, root, between=not due(save_every))
            if due(evaluate_every) or due(save_every) or stopping:
                meter.reset()
                # waits for all workers, so that none ends before the chief has saved
                if workers.reduce_any(bool(stop)):
                    workers.part()
                    raise Stopped(
                        f"stopped at step {state.step}; the same command continues from there",
                        stop.number or signal.SIGTERM,  # another worker's signal is not known
                    )
    _end(train_step, state, root, hooks)


def _end(train_step: TrainStep, state: TrainState, root: str, hooks: Hooks) -> None:
    """Evaluates a run that ends between two evaluations, and says if it ends otherwise than asked.

    It was stopped there, and continues with a `num_train_steps` that is no greater. As after any
    evaluation, weights whose loss is not finite are removed, and the rate may be halved.
    """
    last, workers = train_step.hparams.num_train_steps, train_step.workers
    if workers.reduce_any(workers.chief and not is_evaluated(state)):  # others have no history
        _evaluate_saved(train_step, state, root, hooks)
    if state.step > last:
        hooks.log(f"the run has made {state.step} updates, more than num_train_steps={last}")
    elif state.step < last:
        hooks.log(
            f"no better dev bleu in {state.stale_evaluations} evaluations: training ends here"
        )


def _report(
    hparams: TrainingSettings, state: TrainState, meter: Meter, hooks: Hooks, bar: tqdm
) -> None:
    """Reports the updates since the last report, if there are any, and counts them."""
    if meter.empty:
        return
    state.words += meter.words
    steady, statistics = meter.steady, meter.read()
    state.train_seconds += statistics.pop("seconds")
    statistics["learning_rate"] = learning_rate(hparams, state.step - 1, state.rate_halvings)
    bar.set_postfix_str(
        f"words/s {statistics['words_per_second']:.0f} ppl {statistics['perplexity']:.2f}",
        refresh=False,
    )
    hooks.log(log_line(hparams, state, statistics, steady))
    hooks.on_stats(state.step, statistics)


def _periods(hparams: TrainingSettings) -> tuple[int, int]:
    """Returns the updates between two evaluations, and between two saves."""
    evaluate_every = hparams.steps_per_external_eval or 10 * hparams.steps_per_stats
    return evaluate_every, hparams.steps_per_checkpoint or evaluate_every


def remove_old_checkpoints(hparams: TrainingSettings, root: str, saved: int) -> list[int]:
    """Removes all but `num_keep_ckpts` checkpoints up to `saved`; returns the steps that remain."""

    def due(step: int) -> bool:
        at_period = any(step % every == 0 for every in _periods(hparams))
        return step <= hparams.num_train_steps and (at_period or step == hparams.num_train_steps)

    return checkpoint_series.remove_old(root, hparams.num_keep_ckpts, due, saved)


def save(train_step: TrainStep, state: TrainState, root: str, between: bool = False) -> None:
    """Writes the checkpoint of this step and removes old ones; of several workers, the chief.

    A checkpoint `between` the steps that are due, written because the run was stopped, is removed
    by the next save. The last checkpoints, which are averaged, are then the same as those of a run
    that was never stopped.
    """
    _write(train_step, state, root, between)
    if train_step.workers.chief:
        remove_old_checkpoints(train_step.hparams, root, state.step)


def _write(train_step: TrainStep, state: TrainState, root: str, between: bool) -> None:
    caches = train_step.cache_arrays()  # by all workers
    if not train_step.workers.chief:
        return
    checkpoint.write(
        checkpoint_series.step_folder(root, state.step),
        train_step.weight_arrays(),
        train_step.optimizer_arrays(),
        {**state.as_dict(), "between": True} if between else state.as_dict(),
        caches,
    )


def _evaluate_saved(train_step: TrainStep, state: TrainState, root: str, hooks: Hooks) -> None:
    """Saves a step, so that an evaluation that is killed loses no update, and evaluates it.

    Older checkpoints stay until it has ended, because weights whose loss on dev is not finite are
    removed.
    """
    _write(train_step, state, root, between=True)
    try:
        _evaluate(train_step, state, hooks)
    except Diverged as error:
        shutil.rmtree(checkpoint_series.step_folder(root, state.step), ignore_errors=True)
        raise diverged(error.subject, state.step, root) from None
    _halve_rate(train_step.hparams, state, hooks.log)
    if train_step.workers.chief:  # what was evaluated is the same: only the state has changed
        folder = checkpoint_series.step_folder(root, state.step)
        checkpoint.write_state(folder, {**state.as_dict(), "between": False})
        remove_old_checkpoints(train_step.hparams, root, state.step)
    hooks.show(state.step)


def _evaluate(train_step: TrainStep, state: TrainState, hooks: Hooks) -> None:
    bleu = train_step.workers.broadcast(hooks.evaluate(state))
    if bleu > state.best_bleu:
        state.best_bleu, state.best_step, state.stale_evaluations = bleu, state.step, 0
        hooks.on_best(state)
    else:
        state.stale_evaluations += 1


def _halve_rate(hparams: TrainingSettings, state: TrainState, log: Callable[[str], None]) -> None:
    """Halves the rate if dev BLEU has not risen for `plateau_patience` evaluations.

    A run that ends here does so too, for it may be continued.
    """
    stale = state.stale_evaluations
    if hparams.decay_scheme == "plateau" and stale and stale % hparams.plateau_patience == 0:
        state.rate_halvings += 1
        if not has_ended(hparams, state):
            log(f"no better dev bleu in {stale} evaluations: the learning rate is halved")


def _evaluation_was_killed(state: TrainState, workers: Workers) -> bool:
    """Returns whether the step of a checkpoint at which an evaluation is due has none."""
    steps = [point["step"] for point in state.history]
    return workers.reduce_any(workers.chief and state.step not in steps)  # others have no history


def is_evaluated(state: TrainState) -> bool:
    """Returns whether dev BLEU of the last update is known, and counts."""
    return state.best_step >= 0 and bool(state.history) and state.history[-1]["step"] == state.step


def has_ended(hparams: TrainingSettings, state: TrainState) -> bool:
    """Returns whether a run makes no more updates: it has made all, or is out of patience."""
    out_of_patience = 0 < hparams.early_stopping_patience <= state.stale_evaluations
    return state.step >= hparams.num_train_steps or out_of_patience


def _refuse_non_finite(train_step: TrainStep, state: TrainState, root: str) -> None:
    """Raises UserError if an update was not finite, or has left weights that are not."""
    step = int(train_step.bad_step.numpy())
    if step >= 0:
        raise diverged("loss or gradient is", step, root)
    if not train_step.has_finite_weights():
        raise diverged("a weight is", state.step, root)


def diverged(subject: str, step: int, root: str) -> Diverged:
    """Returns the error of a run in `root` that diverged: what is not finite, and what to do.

    The checkpoint of that step may be finite and yet have weights that no loss can be computed
    with: an update can save them before the next one fails. A lower rate does not help from there.
    """
    folder = checkpoint_series.step_folder(root, step)
    if os.path.exists(folder):
        advice = f"Continuing from {folder} would end in the same way: remove it to start earlier."
    else:
        advice = "The checkpoints are from before; if one of them still ends here, remove it."
    return Diverged(
        f"{subject} not finite at step {step}. {advice} A lower learning_rate or max_gradient_norm "
        "usually helps; so does looking at the training text for broken lines.",
        subject,
    )

"""The checkpoints of a run, one folder a step: finding, repairing, removing, averaging them."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from typing import Any, Callable

import numpy as np

from tfmann.training.checkpoint import Unreadable, existing_folder, read_arrays, read_state, write
from tfmann.training.checkpoint_state import problem_with_continuing
from tfmann.utils.run_folder import STEP, present_folder


def step_folder(root: str, step: int) -> str:
    """Returns the folder of a step's checkpoint: `root/step-00001000`."""
    return os.path.join(root, f"step-{step:08d}")


def steps(root: str, repair: bool = True) -> list[int]:
    """Lists the steps that have a checkpoint below `root`, ascending.

    Args:
      root: the folder of the checkpoints.
      repair: give an `.old` whose replacement a kill has prevented its name back. Only the run
        itself may do so: others list its step, for it may be about to be replaced.
    """
    if not os.path.isdir(root):
        return []
    for name in os.listdir(root) if repair else ():
        old = os.path.join(root, name)
        target = old.removesuffix(".old")
        if target != old and not os.path.exists(target):
            with contextlib.suppress(OSError):  # the folder may be read-only
                os.rename(old, target)
    suffix = "" if repair else ".old"
    matches = (STEP.fullmatch(name.removesuffix(suffix)) for name in os.listdir(root))
    return sorted({int(match.group(1)) for match in matches if match})


def latest(root: str, log: Callable[[str], None] = print, to_continue: bool = False) -> str | None:
    """Finds the newest checkpoint below `root` that can be read, and logs those that cannot.

    Args:
      root: the folder of the checkpoints.
      log: takes a line for each checkpoint that cannot be read.
      to_continue: training is to continue from it, which takes more than weights.

    Raises:
      Unreadable: there are checkpoints, but none can be read.
    """
    existing = steps(root, repair=to_continue)
    for step in reversed(existing):
        folder = present_folder(step_folder(root, step))
        try:
            state = read_state(folder)
            problem = problem_with_continuing(state, step) if to_continue else None
            if problem is not None:
                raise Unreadable(f"{folder}/state.json: {problem}")
            for name in state["sha256"]:
                read_arrays(folder, name[: -len(".npz")])
            return folder
        except Unreadable as error:
            log(f"{error}: falling back to the checkpoint before it")
    if existing:
        raise Unreadable(
            f"none of the {len(existing)} checkpoints in {root} can be read. Restore one from a "
            "copy, or give another out_dir to start again."
        )
    return None


def rebuild(folder: str, step: int, root: str, log: Callable[[str], None]) -> None:
    """Rebuilds the weights of `step` in `folder` from its checkpoint below `root`.

    They are as they were unless the folder is damaged, or has the weights of a later step: a run
    that was killed before that step's checkpoint was complete may not find them the best again.
    These stay if the checkpoint of `step` no longer exists.

    Raises:
      Unreadable: they are damaged, and that checkpoint no longer exists.
    """
    source = step_folder(root, step)
    damage: Unreadable | None = None
    try:
        existing = existing_folder(folder, log)
        read_arrays(existing)
        held = read_state(existing).get("step", step)
        if held == step:
            return
        problem = f"{folder} is of step {held}, from which the run does not continue"
    except Unreadable as error:
        problem, damage = str(error), error
    try:
        weights, state = read_arrays(source), read_state(source)
    except Unreadable:
        if damage is None:
            log(f"{problem}; the checkpoint of step {step} no longer exists, so they stay")
            return
        raise Unreadable(
            f"{damage}, and the checkpoint of step {step}, which had the same weights, no longer "
            "exists. Restore one of them from a copy, or give another out_dir to start again."
        ) from None
    write(folder, weights, None, {key: v for key, v in state.items() if key != "sha256"})
    log(f"{problem}: rebuilt from {source}")


def remove_old(
    root: str,
    count: int,
    due: Callable[[int], bool] = lambda step: True,
    saved: int | None = None,
) -> list[int]:
    """Removes all but the newest `count` checkpoints, and the leftovers of killed runs.

    A checkpoint that a run wrote because it was stopped between two saves (`between` in its state)
    is not counted, and the next save removes it: the remaining ones are those of a run that was
    never stopped. One with a damaged state counts if a save was `due` at its step, because the run
    will reach that step again.

    Args:
      root: the folder of the checkpoints.
      count: how many remain.
      due: whether a save is due at a step.
      saved: the step that the run is at. Later checkpoints are damaged ones, from before which the
        run has continued: they neither count nor are removed. None is the newest with a state.

    Returns:
      the counted steps that remain, ascending.
    """
    for name in os.listdir(root):
        path = os.path.join(root, name)
        is_replaced = name.endswith(".old") and os.path.exists(path.removesuffix(".old"))
        if ".tmp" in name or is_replaced:
            shutil.rmtree(path, ignore_errors=True)
    existing = steps(root)
    states = {step: _state_or_none(step_folder(root, step)) for step in existing}
    regular = [
        step for step, state in states.items()
        if (due(step) if state is None else not state.get("between"))
        and (saved is None or step <= saved)
    ][-count:]  # fmt: skip
    newest = max((step for step in existing if states[step] is not None), default=-1)
    if saved is not None:
        newest = min(newest, saved)
    for step in existing:
        if step not in regular and step < newest:
            folder = step_folder(root, step)
            with contextlib.suppress(OSError):
                # so that a kill leaves no half-removed checkpoint
                os.rename(folder, f"{folder}.tmp")
                shutil.rmtree(f"{folder}.tmp", ignore_errors=True)
    return regular


def _state_or_none(folder: str) -> dict[str, Any] | None:
    """Reads the state of a checkpoint; returns None if it is missing or damaged."""
    try:
        return read_state(folder)
    except Unreadable:
        return None


def average(folders: Sequence[str]) -> dict[str, np.ndarray]:
    """Averages the weights of several checkpoints, in float64.

    Raises:
      Unreadable: one of them is missing or damaged.
    """
    total: dict[str, np.ndarray] = {}
    for folder in folders:
        try:
            arrays = read_arrays(folder)
        except Unreadable as error:
            raise Unreadable(
                f"{error}, and the average of the last checkpoints needs it. Restore it from a "
                f"copy, or remove {folder} for the average of the others."
            ) from None
        for name, value in arrays.items():
            total[name] = total.get(name, 0.0) + value.astype(np.float64)
    return {name: (value / len(folders)).astype(np.float32) for name, value in total.items()}

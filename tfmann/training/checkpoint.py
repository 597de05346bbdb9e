"""Checkpoints: folders of NumPy archives, written beside and renamed, checked before they are used.

    step-00012000/weights.npz     every weight by name ("model/cell/memory_kernel")
    step-00012000/optimizer.npz   the optimizer's slots by name, for going on
    step-00012000/documents.npz   what documents have kept so far, of models with a cache
    step-00012000/state.json      step, position in the data, history; SHA-256 of the rest

A folder that stands under its final name is complete. `np.load` opens the archives; nothing in
them is pickled.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Callable

import numpy as np

from tfmann.corpus.files import reason, swap
from tfmann.corpus.sealed import seal, unseal
from tfmann.errors import UserError
from tfmann.folder import STEP, weights_of
from tfmann.temporary import sync
from tfmann.training.state import problem_with, problem_with_going_on

Arrays = Mapping[str, np.ndarray]


class Unreadable(UserError):
    """A checkpoint is missing, truncated or altered."""


def write(
    folder: str,
    weights: Arrays,
    optimizer: Arrays | None,
    state: Mapping,
    documents: Arrays | None = None,
) -> None:
    """Writes a checkpoint folder; an older one of that name is replaced when all is on disk.

    Args:
      folder: where.
      weights: by name.
      optimizer: its slots by name, if training is to go on from here.
      state: JSON types.
      documents: what documents that are being read have kept, if anything.

    Raises:
      UserError: the disk is full or the place cannot be written to; what was there stays.
    """
    temporary = f"{folder}.tmp"  # one process writes at a time: what is there, a kill has left
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        os.makedirs(temporary)
        parts = {"weights.npz": weights}
        if optimizer is not None:
            parts["optimizer.npz"] = optimizer
        if documents:
            parts["documents.npz"] = documents
        sums = {name: _save(os.path.join(temporary, name), part) for name, part in parts.items()}
        body = seal({**state, "sha256": sums})
        with open(os.path.join(temporary, "state.json"), "w", encoding="utf-8") as stream:
            json.dump(body, stream, indent=1)
            stream.flush()
            os.fsync(stream.fileno())
        sync(temporary)
        swap(temporary, folder)
    except OSError as error:
        raise UserError(
            f"cannot write the checkpoint {folder}: {reason(error)}. Earlier checkpoints are "
            "as they were; make room (or mend the folder) and give the same command again."
        ) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _save(path: str, arrays: Arrays) -> str:
    with open(path, "wb") as stream:
        # not by np.savez, which pickles objects and leaves its archive open when the disk is full
        with zipfile.ZipFile(stream, "w") as archive:
            for name, value in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.asarray(value), allow_pickle=False)
        stream.flush()
        os.fsync(stream.fileno())
    return _file_digest(path)


def _file_digest(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def read_state(folder: str) -> dict[str, Any]:
    """Reads and verifies `state.json`.

    Raises:
      Unreadable: it is missing, not as it was written, or no state of a checkpoint.
    """
    path = os.path.join(folder, "state.json")
    try:
        state = unseal(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise Unreadable(f"{path} is missing or damaged") from None
    if state is None:
        raise Unreadable(f"{path} is not as it was written")
    problem = problem_with(state)
    if problem is not None:
        raise Unreadable(f"{path} is no state of a checkpoint: {problem}")
    return state


def read_arrays(folder: str, name: str = "weights") -> dict[str, np.ndarray]:
    """Reads and verifies one archive of a checkpoint.

    Raises:
      Unreadable: it is missing or not as it was written.
    """
    path = os.path.join(folder, f"{name}.npz")
    claimed = read_state(folder)["sha256"].get(f"{name}.npz")
    try:
        if _file_digest(path) != claimed:
            raise Unreadable(f"{path} is not as it was written")
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError):
        raise Unreadable(f"{path} is missing or damaged") from None


def standing(folder: str, log: Callable[[str], None]) -> str:
    """A checkpoint's folder, or the `.old` that a kill left while it was replaced; says so.

    Of a run's folder it is the best checkpoint.
    """
    folder = weights_of(folder)
    old = f"{folder}.old"
    if os.path.exists(folder) or not os.path.exists(old):
        return folder
    log(f"{folder} was being replaced when a run was stopped: taking {old}, the one before")
    return old


def folder_of_step(root: str, step: int) -> str:
    """`root/step-00001000`."""
    return os.path.join(root, f"step-{step:08d}")


def steps(root: str) -> list[int]:
    """Steps that have a checkpoint below `root`, ascending."""
    if not os.path.isdir(root):
        return []
    for name in os.listdir(root):  # a kill between two renames: the older one comes back
        old = os.path.join(root, name)
        if name.endswith(".old") and not os.path.exists(old[:-4]):
            with contextlib.suppress(OSError):  # who only reads cannot mend it
                os.rename(old, old[:-4])
    matches = (STEP.fullmatch(name) for name in os.listdir(root))
    return sorted(int(match.group(1)) for match in matches if match)


def latest(
    root: str, log: Callable[[str], None] = print, to_go_on: bool = False
) -> str | None:
    """The newest checkpoint below `root` that can be read; says which ones cannot.

    Args:
      root: where.
      log: is told.
      to_go_on: training is to go on from it, which takes more than weights.

    Raises:
      Unreadable: there are checkpoints, but none can be read.
    """
    found = steps(root)
    for step in reversed(found):
        folder = folder_of_step(root, step)
        try:
            state = read_state(folder)
            problem = problem_with_going_on(state, step) if to_go_on else None
            if problem is not None:
                raise Unreadable(f"{folder}/state.json: {problem}")
            for name in state["sha256"]:
                read_arrays(folder, name[: -len(".npz")])
            return folder
        except Unreadable as error:
            log(f"{error}: falling back to the checkpoint before it")
    if found:
        raise Unreadable(
            f"none of the {len(found)} checkpoints in {root} can be read. Put one back from a "
            "copy, or give another out_dir to begin anew."
        )
    return None


def mend(folder: str, step: int, root: str, log: Callable[[str], None]) -> None:
    """Writes the weights of `step` anew from its checkpoint below `root` if they are damaged.

    Raises:
      Unreadable: they are, and that checkpoint is not kept any more.
    """
    try:
        read_arrays(standing(folder, log))
    except Unreadable as error:
        source = folder_of_step(root, step)
        try:
            weights, state = read_arrays(source), read_state(source)
        except Unreadable:
            raise Unreadable(
                f"{error}, and the checkpoint of step {step}, whose weights it held, is not kept "
                "any more. Put it back from a copy, or give another out_dir to begin anew."
            ) from None
        write(folder, weights, None, {k: v for k, v in state.items() if k != "sha256"})
        log(f"{error}: written anew from {source}")


def keep_last(root: str, count: int, due: Callable[[int], bool] = lambda step: True) -> list[int]:
    """Removes all but the newest `count` checkpoints, and what killed runs left behind.

    Those of a run that was asked to stop between two saves (`between` in their state) do not
    count, and the next one takes their place: which are kept is as if it had not been stopped. One
    whose state is damaged counts if a save was `due` at its step: the run comes there again.

    Returns:
      the steps that count and are kept, ascending.
    """
    for name in os.listdir(root):
        path = os.path.join(root, name)
        replaced = name.endswith(".old") and os.path.exists(path[: -len(".old")])
        if ".tmp" in name or replaced:
            shutil.rmtree(path, ignore_errors=True)
    found = steps(root)
    states = {step: _state(folder_of_step(root, step)) for step in found}
    regular = [
        step for step, state in states.items()
        if (due(step) if state is None else not state.get("between"))
    ][-count:]  # fmt: skip
    newest = max((step for step in found if states[step] is not None), default=-1)
    for step in found:
        if step not in regular and step < newest:
            folder = folder_of_step(root, step)
            with contextlib.suppress(OSError):
                os.rename(folder, f"{folder}.tmp")  # or a kill leaves half of one that counts
                shutil.rmtree(f"{folder}.tmp", ignore_errors=True)
    return regular


def _state(folder: str) -> dict[str, Any] | None:
    """The state of a checkpoint; None where it is missing or damaged."""
    try:
        return read_state(folder)
    except Unreadable:
        return None


def average(folders: Sequence[str]) -> dict[str, np.ndarray]:
    """The plain mean of several checkpoints' weights, summed in float64.

    Raises:
      Unreadable: one of them is missing or damaged.
    """
    total: dict[str, np.ndarray] = {}
    for folder in folders:
        try:
            arrays = read_arrays(folder)
        except Unreadable as error:
            raise Unreadable(
                f"{error}, and the average of the last checkpoints needs it. Put it back from a "
                f"copy, or remove {folder} for the average of the others."
            ) from None
        for name, value in arrays.items():
            total[name] = total.get(name, 0.0) + value.astype(np.float64)
    return {name: (value / len(folders)).astype(np.float32) for name, value in total.items()}


def assign(variables: Sequence[Any], arrays: Arrays, where: str) -> None:
    """Sets every variable from the array of its name.

    Raises:
      UserError: names or shapes are not the same on both sides; nothing was set then.
    """
    named = by_name(variables)
    problems = [f"{name} is missing there" for name in named if name not in arrays]
    problems += [f"{name} is not in this model" for name in arrays if name not in named]
    problems += _unlike_shapes(named, arrays)
    if problems:
        more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        raise UserError(f"{where} is another model's: {'; '.join(problems[:3])}{more}")
    for name, variable in named.items():
        variable.assign(arrays[name])


def assign_fitting(
    variables: Sequence[Any],
    arrays: Arrays,
    where: str,
    ancestor: Callable[[str], str] = lambda name: name,
) -> tuple[list[str], list[str]]:
    """Sets the variables that the arrays have.

    Args:
      variables: of the model that is to start.
      arrays: of another model, by name.
      where: what to call it.
      ancestor: name of a variable to that of the weight it starts as a copy of, where there is
        none of its own name.

    Returns:
      what was set, as `NAME` or `NAME (a copy of ANCESTOR)`, and the names left as they are.

    Raises:
      UserError: a name is on both sides with unlike shapes, or no name is on both sides.
    """
    named = by_name(variables)
    origins = {}
    for name in named:
        found = [one for one in (name, ancestor(name)) if one in arrays]
        if found:
            origins[name] = found[0]
    taken = {name: arrays[origin] for name, origin in origins.items()}
    problems = _unlike_shapes(named, taken)
    if problems or not taken:
        reason = problems[0] if problems else "no weight there has a name of this model"
        raise UserError(f"{where} cannot start this model: {reason}")
    for name, value in taken.items():
        named[name].assign(value)
    said = [n if n == o else f"{n} (a copy of {o})" for n, o in origins.items()]
    return said, [name for name in named if name not in taken]


def by_name(variables: Sequence[Any]) -> dict[str, Any]:
    """Variables by name, without TensorFlow's `:0`.

    Raises:
      ValueError: two have the same name.
    """
    named = {variable.name.split(":")[0]: variable for variable in variables}
    if len(named) != len(variables):
        raise ValueError("two variables have the same name")
    return named


def _unlike_shapes(named: Mapping[str, Any], arrays: Arrays) -> list[str]:
    return [
        f"{name} is {list(arrays[name].shape)} there and {list(variable.shape)} here"
        for name, variable in named.items()
        if name in arrays and tuple(arrays[name].shape) != tuple(variable.shape)
    ]

"""A run's folder: names of its files, its log, and the lock that keeps a second run out.

The system releases the lock when the process that holds it ends, even if it is killed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import itertools
import json
import os
import re
import shutil
import sys
from types import TracebackType
from typing import Any, BinaryIO, Callable

from tfmann.errors import UserError
from tfmann.utils import atomic_files

RUNS = "runs"  # the folder of runs for a command that is given no other
HPARAMS = "hparams.json"
INPUTS = "inputs.json"  # digests of the files that it was trained on
SUBWORD_MODEL = "subword.model"
RESULTS = "results.json"  # only of a finished run
BEST = "best_bleu"
AVERAGE = "avg_checkpoints"
CHECKPOINTS = "checkpoints"

STEP = re.compile(r"step-(\d{8,})")  # a checkpoint's folder

# Temporary files of a run, which a kill leaves behind.
_LEFTOVER = re.compile(
    r"(hparams\.json|inputs\.json|results\.json|vocab\..+|subword\.model|output_(dev|test)(_average)?"
    r"|best_bleu|avg_checkpoints)\.tmp(-[0-9a-f]{8}|\d*)"
)


def vocabulary_name(suffix: str) -> str:
    """Returns the name of the vocabulary of the side `suffix`, such as `de`."""
    return f"vocab.{suffix}"


def has_weights(root: str) -> bool:
    """Returns whether a run has saved weights; until then its settings may still change."""
    return has_steps(root) or os.path.exists(present_folder(os.path.join(root, BEST)))


def has_steps(root: str) -> bool:
    """Returns whether a run has a checkpoint that training continues from."""
    return any(name.startswith("step-") and ".tmp" not in name for name in _checkpoints(root))


def has_best(root: str) -> bool:
    """Returns whether the best weights of a run can be used: its folder may be removed by half."""
    folder = present_folder(os.path.join(root, BEST))
    return all(os.path.exists(os.path.join(folder, name)) for name in ("state.json", "weights.npz"))


def present_folder(checkpoint: str) -> str:
    """Returns a checkpoint's folder, or the `.old` that a kill left while it was replaced."""
    old = f"{checkpoint}.old"
    return old if os.path.exists(old) and not os.path.exists(checkpoint) else checkpoint


def is_of_last_training(path: str | os.PathLike[str], root: str) -> bool:
    """Returns whether a file that was computed with the weights of a finished run is there.

    One that is older than the run's results is of an earlier training, and does not count as long
    as the run has weights to compute it again.
    """
    if not os.path.exists(path):
        return False
    results = os.path.join(root, RESULTS)
    is_older = os.path.exists(results) and os.path.getmtime(path) < os.path.getmtime(results)
    return not (is_older and has_best(root))


def weights_folder(path: str) -> str:
    """Returns the best checkpoint's folder if `path` is a run's folder, else `path` itself."""
    return os.path.join(path, BEST) if os.path.exists(os.path.join(path, HPARAMS)) else path


def run_of(path: str) -> str | None:
    """Returns the folder of the run whose checkpoint `path` is, or that it is itself, or None."""
    path = os.path.realpath(path)
    root, name = os.path.split(path)
    name = name.removesuffix(".old")
    if os.path.exists(os.path.join(path, HPARAMS)):
        root = path
    elif STEP.fullmatch(name) and os.path.basename(root) == CHECKPOINTS:
        root = os.path.dirname(root)
    elif name not in (BEST, AVERAGE):
        return None
    return root if os.path.exists(os.path.join(root, HPARAMS)) else None


def last_step(root: str) -> int | None:
    """Returns the step of a run's last checkpoint, by its name; None if there is none."""
    matches = map(STEP.fullmatch, _checkpoints(root))
    return max((int(match[1]) for match in matches if match), default=None)


def count_evaluations(root: str) -> int:
    """Returns how often a run was evaluated until its best, by the state saved there; 0 if lost."""
    state = os.path.join(present_folder(os.path.join(root, BEST)), "state.json")
    try:
        with open(state, encoding="utf-8") as stream:
            return len(json.load(stream)["history"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _checkpoints(root: str) -> list[str]:
    try:
        return os.listdir(os.path.join(root, CHECKPOINTS))
    except OSError:
        return []


def files_of_model(root: str) -> list[str]:
    """Lists the files of a run that only training makes, relative to its folder."""
    names = (HPARAMS, INPUTS, RESULTS, SUBWORD_MODEL, vocabulary_name("*"))
    patterns = (*names, f"{BEST}/*", f"{AVERAGE}/*", f"{CHECKPOINTS}/*/*")
    paths = (glob.glob(os.path.join(glob.escape(root), pattern)) for pattern in patterns)
    return [os.path.relpath(path, root) for path in itertools.chain.from_iterable(paths)]


class RunFolder:
    """Opens `out_dir` for one process that writes there, and for its workers, which only read.

    Raises:
      UserError: it cannot be made or written to, or another process is training there.
    """

    def __init__(self, root: str, log: Callable[[str], None], writes: bool = True):
        """Touches no file yet; a read-only worker takes no lock and logs nothing."""
        self.root, self._print, self._writes = root, log, writes
        self.checkpoints, self.best = self.path(CHECKPOINTS), self.path(BEST)

    def path(self, name: str) -> str:
        """Returns the path of a file in the folder."""
        return os.path.join(self.root, name)

    def __enter__(self) -> RunFolder:
        """Makes the folder, takes the lock, opens the log."""
        if not self._writes:
            return self
        with contextlib.ExitStack() as opened:
            try:
                os.makedirs(self.checkpoints, exist_ok=True)
                lock = opened.enter_context(_open_for_appending(self.path("lock")))
                # unbuffered: closing it on a full disk must not fail once more
                self._log = opened.enter_context(_open_for_appending(self.path("train.log")))
                handle = os.open(self.root, os.O_RDONLY)
                opened.callback(os.close, handle)
            except OSError as error:
                raise UserError(f"out_dir {self.root} cannot be used: {error.strerror}") from None
            self._lock(lock.fileno())
            with contextlib.suppress(_Unlockable):  # NFS cannot lock a folder
                self._lock(handle)  # too: the lock file, and its lock with it, may be removed
            self._opened = opened.pop_all()
        self._remove_leftovers()
        return self

    def _lock(self, handle: int) -> None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"another process is training in {self.root}") from None
        except OSError as error:
            raise _Unlockable(f"out_dir {self.root} cannot be locked: {error.strerror}") from None

    def __exit__(
        self, kind: type | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the log and releases the lock."""
        if self._writes:
            self._opened.close()

    def log(self, message: Any) -> None:
        """Prints a line and appends it to `train.log`."""
        if not self._writes:
            return
        from tqdm import tqdm  # not before something is logged

        try:
            with tqdm.external_write_mode():  # lines go above a progress bar
                self._print(str(message))
        except OSError:  # the reader of the pipe has gone, or its disk is full: training continues
            self._print = _print_nothing
            _redirect_output_to_null()
        # A full disk is reported when a checkpoint is saved.
        with contextlib.suppress(OSError):
            self._log.write(f"{message}\n".encode("utf-8", "backslashreplace"))

    def _remove_leftovers(self) -> None:
        """Removes incomplete files of killed runs."""
        for name in filter(_LEFTOVER.fullmatch, os.listdir(self.root)):
            path = self.path(name)
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                atomic_files.remove_unlocked(path)  # --mode=tune may be writing it


class _Unlockable(UserError):
    """The file system has no locks."""


def _open_for_appending(path: str) -> BinaryIO:
    """Opens a file of the run for appending; refuses a link, which may lead to any other file.

    Raises:
      UserError: it is a link.
      OSError: it cannot be opened.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UserError(f"{path} is a link; a file of the run's own was expected") from None
        raise
    return os.fdopen(handle, "ab", buffering=0)


def _print_nothing(message: str) -> None:
    """Takes the place of `print` once standard output has failed."""


def _redirect_output_to_null() -> None:
    """Redirects a broken standard output, whose buffer would raise again when Python exits."""
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)

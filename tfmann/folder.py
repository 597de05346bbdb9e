"""A run's folder: its places, its log file, and the lock that keeps a second run out.

The lock is the system's and ends with the process that holds it, however that ends.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shutil
import sys
from types import TracebackType
from typing import Any, BinaryIO, Callable

from tfmann import temporary
from tfmann.errors import UserError

HPARAMS = "hparams.json"
RESULTS = "results.json"  # of a run that has ended
BEST = "best_bleu"
CHECKPOINTS = "checkpoints"

STEP = re.compile(r"step-(\d{8,})")  # a checkpoint's folder

# What a run writes beside these names before it is renamed, and a kill leaves there.
_LEFT = re.compile(
    r"(hparams\.json|inputs\.json|results\.json|vocab\..+|subword\.model|output_dev|output_test"
    r"|best_bleu|avg_checkpoints)\.tmp(-[0-9a-f]{8}|\d*)"
)


def begun(root: str) -> bool:
    """Whether a run's folder holds something trained; until then nothing in it binds."""
    steps = [name for name in _checkpoints(root) if name.startswith("step-") and ".tmp" not in name]
    best = [os.path.join(root, name) for name in (BEST, f"{BEST}.old")]  # .old: by a kill
    return bool(steps) or any(os.path.exists(path) for path in best)


def weights_of(path: str) -> str:
    """A checkpoint's folder: the best of a run where `path` is a run's folder, else `path`."""
    return os.path.join(path, BEST) if os.path.exists(os.path.join(path, HPARAMS)) else path


def last_step(root: str) -> int | None:
    """The update of a run's last checkpoint, by its name; None where there is none."""
    found = [STEP.fullmatch(name) for name in _checkpoints(root)]
    return max((int(one[1]) for one in found if one), default=None)


def _checkpoints(root: str) -> list[str]:
    try:
        return os.listdir(os.path.join(root, CHECKPOINTS))
    except OSError:
        return []


class RunFolder:
    """Opens `out_dir` for one process at a time, and for those that train with it and only read.

    Raises:
      UserError: it cannot be made or written to, or another process is training there.
    """

    def __init__(self, root: str, log: Callable[[str], None], writes: bool = True):
        """Nothing is made yet; who does not write takes no lock, prints and keeps nothing."""
        self.root, self._print, self._writes = root, log, writes
        self.checkpoints, self.best = self.path(CHECKPOINTS), self.path(BEST)

    def path(self, name: str) -> str:
        """A place in the folder."""
        return os.path.join(self.root, name)

    def __enter__(self) -> RunFolder:
        """Makes the folder, takes the lock, opens the log."""
        if not self._writes:
            return self
        with contextlib.ExitStack() as opened:
            try:
                os.makedirs(self.checkpoints, exist_ok=True)
                lock = opened.enter_context(_own_file(self.path("lock")))
                # without a buffer: what a full disk refuses is not tried again when it is closed
                self._log = opened.enter_context(_own_file(self.path("train.log")))
                place = os.open(self.root, os.O_RDONLY)
                opened.callback(os.close, place)
            except OSError as error:
                raise UserError(f"out_dir {self.root} cannot be used: {error.strerror}") from None
            self._lock(lock.fileno())
            with contextlib.suppress(_Unlockable):  # NFS locks no folder
                self._lock(place)  # since somebody may remove the file, and its lock with it
            self._opened = opened.pop_all()
        self._sweep()
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
        """Lets others in."""
        if self._writes:
            self._opened.close()

    def log(self, message: Any) -> None:
        """Prints a line and keeps it in `train.log`."""
        if not self._writes:
            return
        try:
            self._print(str(message))
        except OSError:  # who read it has gone, or its disk is full; the run goes on
            self._print = _nothing
            _mute()
        with contextlib.suppress(OSError):  # a full disk: the checkpoint says so, with what to do
            self._log.write(f"{message}\n".encode("utf-8", "backslashreplace"))

    def _sweep(self) -> None:
        """Removes what killed runs left half written."""
        for name in filter(_LEFT.fullmatch, os.listdir(self.root)):
            path = self.path(name)
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                temporary.discard(path)  # unless it is what --mode=tune is writing


class _Unlockable(UserError):
    """The file system has no locks."""


def _own_file(path: str) -> BinaryIO:
    """Opens a file of the run's for appending, and no other's that a link leads to.

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


def _nothing(message: str) -> None:
    """Prints nowhere."""


def _mute() -> None:
    """Lets standard output end in nothing: what is left in its buffer is no error at the end."""
    try:
        sys.stdout.flush()
    except OSError:  # it is what failed, then
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)

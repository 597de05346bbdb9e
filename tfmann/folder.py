"""A run's folder: its places, its log file, and the lock that keeps a second run out."""

from __future__ import annotations

import fcntl
import os
from types import TracebackType
from typing import Any, Callable

from tfmann.errors import UserError

HPARAMS = "hparams.json"
BEST = "best_bleu"
CHECKPOINTS = "checkpoints"


def begun(root: str) -> bool:
    """Whether a run's folder holds something trained; until then nothing in it binds."""
    try:
        kept = os.listdir(os.path.join(root, CHECKPOINTS))
    except OSError:
        kept = []
    steps = [name for name in kept if name.startswith("step-") and ".tmp" not in name]
    best = [os.path.join(root, name) for name in (BEST, f"{BEST}.old")]  # .old: by a kill
    return bool(steps) or any(os.path.exists(path) for path in best)


class RunFolder:
    """Opens `out_dir` for one process at a time.

    Raises:
      UserError: it cannot be made or written to, or another process is training there.
    """

    def __init__(self, root: str, log: Callable[[str], None]):
        """Nothing is made yet."""
        self.root, self._print = root, log
        self.checkpoints, self.best = self.path(CHECKPOINTS), self.path(BEST)

    def path(self, name: str) -> str:
        """A place in the folder."""
        return os.path.join(self.root, name)

    def __enter__(self) -> RunFolder:
        """Makes the folder, takes the lock, opens the log."""
        try:
            os.makedirs(self.checkpoints, exist_ok=True)
            self._lock = open(self.path("lock"), "w")  # noqa: SIM115 (kept while the run lasts)
            self._log = open(  # noqa: SIM115
                self.path("train.log"), "a", encoding="utf-8", errors="backslashreplace"
            )
        except OSError as error:
            raise UserError(f"out_dir {self.root} cannot be used: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.__exit__(None, None, None)
            raise UserError(f"another process is training in {self.root}") from None
        return self

    def __exit__(
        self, kind: type | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Lets others in."""
        self._log.close()
        self._lock.close()

    def log(self, message: Any) -> None:
        """Prints a line and keeps it in `train.log`."""
        self._print(str(message))
        try:
            self._log.write(f"{message}\n")
            self._log.flush()
        except OSError:
            pass  # a full disk: the checkpoint says so, with what to do

"""What hurts a run from outside: damaged files and full disks; and what is left after it."""

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.command_line import tree

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not installed

from benchmarks.trust.forks import Forks  # noqa: E402

LOGS = ("train.log", "train_log", "lock")  # what even a refused command writes to


def flip(path):
    """Turns a bit in the middle of a file over."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(content)


def cut(path):
    """Takes a file's last third away."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])


def kept(out):
    """A run's files by content, without logs."""
    files = tree(out)
    return {name: sum_ for name, sum_ in files.items() if not _is_log(out, name)}


def _is_log(out, name):
    return str(Path(name).relative_to(out)).startswith(LOGS)


@contextlib.contextmanager
def disk(folder, size):
    """A file system of its own in `folder`, of `size` as mount has it; skips without root."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting a file system needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def remount(folder, options):
    """Changes a file system made by `disk`."""
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)


class Hurt:
    """Runs command lines in forks; each has its log, from which `said` reads."""

    def __init__(self, folder):
        self.forks, self._log = Forks(Path(__file__).parent), folder / "log"
        self.said = ""

    def run(self, argv, **how):
        """Runs one; returns its status, and keeps what it said."""
        self._log.unlink(missing_ok=True)
        status = self.forks.run(argv, how.pop("log", self._log), **how).status
        self.said = self._log.read_text() if self._log.exists() else ""
        assert "Traceback" not in self.said, self.said
        return status

    def ends(self, argv, **how):
        """Runs one that has to end well."""
        status = self.run(argv, **how)
        assert status == 0, (status, self.said)

    def refused(self, argv, status=1, **how):
        """Runs one that has to stop with one message, which is returned."""
        assert self.run(argv, **how) == status, self.said
        messages = [line for line in self.said.splitlines() if line.startswith("tfmann: ")]
        assert len(messages) == 1 and self.said.endswith(f"{messages[0]}\n"), self.said
        return messages[0]

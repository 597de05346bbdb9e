"""Faults from outside a run: damaged files and full disks; and the files that it leaves."""

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


def flip_bit(path):
    """Flips a bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(content)


def truncate(path):
    """Removes the last third of a file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])


def files_of(out):
    """Returns the digests of a run's files, without logs."""
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


class ForkedCommand:
    """A runner of command lines in forks; `output` is the log of the last one."""

    def __init__(self, folder):
        self.forks, self._log = Forks(Path(__file__).parent), folder / "log"
        self.output = ""

    def run(self, argv, **options):
        """Runs a command line; returns its status."""
        self._log.unlink(missing_ok=True)
        status = self.forks.run(argv, options.pop("log", self._log), **options).status
        self.output = self._log.read_text() if self._log.exists() else ""
        assert "Traceback" not in self.output, self.output
        return status

    def succeeds(self, argv, **options):
        """Runs a command line that must succeed."""
        status = self.run(argv, **options)
        assert status == 0, (status, self.output)

    def refused(self, argv, status=1, **options):
        """Runs a command line that must stop with one message, which is returned."""
        assert self.run(argv, **options) == status, self.output
        messages = [line for line in self.output.splitlines() if line.startswith("tfmann: ")]
        assert len(messages) == 1 and self.output.endswith(f"{messages[0]}\n"), self.output
        return messages[0]

"""The outcome of a command line with bad input: accepted, or refused as it should be."""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Callable, NamedTuple


class Outcome(NamedTuple):
    """The outcome of a command."""

    accepted: bool
    lines: list[bytes]  # of its output file
    message: str


class Folder:
    """A folder for one case."""

    def __init__(self, path: Path):
        """Takes an empty folder."""
        self.path = path

    def write(self, name: str, content: bytes) -> Path:
        """Writes a file; returns its path."""
        path = self.path / name
        path.write_bytes(content)
        return path


@contextlib.contextmanager
def fresh_folder() -> Iterator[Folder]:
    """Creates a temporary folder inside another, in which nothing else may appear."""
    parent = Path(tempfile.mkdtemp(prefix="tfmann-trust-"))
    try:
        folder = parent / "inside"
        folder.mkdir()
        yield Folder(folder)
        assert [path.name for path in parent.iterdir()] == ["inside"], "a file left its folder"
    finally:
        shutil.rmtree(parent)


def judge_command(command: Callable[[], int], output: Path, faulty: Path | None = None) -> Outcome:
    """Runs a command line's main; asserts that it accepts or refuses its input properly.

    A refusal is one line on standard error, a status of 1 or 2 and no output file. If `faulty` is a
    file that may have several faults, it is one line for each, with the file's name. An exception
    from `command` is a failure.
    """
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        status = command()
    message = errors.getvalue()
    assert "Traceback" not in message, message
    if status == 0:
        content = output.read_bytes() if output.exists() else b""
        assert not content or content.endswith(b"\n")
        return Outcome(True, content.split(b"\n")[:-1], message)
    assert status in (1, 2), status
    assert message.startswith("tfmann: ") and message.endswith("\n"), message
    _, *more = message.removesuffix("\n").split("\n")
    assert all(faulty and line.startswith(f"{faulty}: ") for line in more), message
    assert not output.exists(), "refused, but an output file was left"
    return Outcome(False, [], message)

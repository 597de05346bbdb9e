"""A command that is killed and run again, and compared with an undisturbed one."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.trust.ending import differences, ending
from benchmarks.trust.forks import ROOT, Ended, Forks
from benchmarks.trust.killable import COMMANDS, training_flags

STOPPED = (-signal.SIGKILL, -signal.SIGTERM, 143)  # 143: it has saved its state, or cleaned up


class Length(NamedTuple):
    """The length of an undisturbed command line, in three measures."""

    cpu: float  # seconds
    calls: int  # to the file system
    seconds: float


class Subject:
    """A command with the folder that it acts on."""

    def __init__(self, name: str, folder: Path):
        """Runs the command undisturbed, on the corpus in `folder`."""
        self.command, self.folder = COMMANDS[name], folder
        self.out, self.log, self._start = folder / "out", folder / "log", folder / "start"
        self._lines = [
            line.format(data=folder, out=self.out).split() for line in self.command.lines
        ]
        self._prepare = [self.command.prepare, str(folder)] if self.command.prepare else []
        self.forks = Forks()

    def __enter__(self) -> Subject:
        try:
            self._start.mkdir()
            if self.command.trained:
                argv = training_flags(self.folder, self._start / "run")
                ended = self.forks.run(argv, self.log)
                assert ended.status == 0, self.log.read_text()
            self.lengths, self.ending = self._undisturbed()
        except BaseException:
            self.forks.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.forks.close()

    def point(self, stream: random.Random) -> dict[str, Any]:
        """Kills the command and runs it again.

        Returns:
          `kills`: with the exit status; `missed`: kills that came after the end; `differs`: parts
          that differ from the undisturbed command's; `cpu`: seconds.
        """
        missed, kills = 0, list[dict[str, Any]]()
        while not kills:
            self.reset()
            position, cpu, ended = 0, 0.0, Ended(0, 0.0, 0)
            for kill in draw(stream, self.lengths, self.command.waits):
                position, ended, spent = self._run_from(position, kill)
                cpu += spent
                if ended.status not in STOPPED:
                    missed += 1
                    break
                kills.append({**kill, "status": ended.status})
            if ended.status not in (0, *STOPPED):
                break
        if ended.status in STOPPED:
            _, ended, spent = self._run_from(position, {})
            cpu += spent
        differs = [] if ended.status else differences(ending(self.out), self.ending)
        messages = self.log.read_text()
        if ended.status or "Traceback" in messages:
            differs.append(f"status {ended.status}: {messages[-300:]}")
        return {"kills": kills, "missed": missed, "differs": differs, "cpu": cpu}

    def reset(self) -> None:
        """Makes the folder as it was before the command."""
        shutil.rmtree(self.out, ignore_errors=True)
        self.log.unlink(missing_ok=True)
        shutil.copytree(self._start, self.out)

    def _run_from(self, position: int, kill: dict[str, Any]) -> tuple[int, Ended, float]:
        """Runs the command lines from one of them on, until one fails or is killed.

        Returns:
          the number of the last one; its end; CPU seconds of all.
        """
        cpu, ended = 0.0, Ended(0, 0.0, 0)
        victim = max(position, kill.get("line", 0)) if kill else None
        for number in range(position, len(self._lines)):
            moment = kill if number == victim else None
            ended = self.forks.run(
                self._lines[number], self.log, moment, self._prepare, root=self.out
            )
            cpu += ended.cpu
            if ended.status:
                return number, ended, cpu
        return len(self._lines) - 1, ended, cpu

    def _undisturbed(self) -> tuple[list[Length], dict[str, str]]:
        """Runs the command in a process of its own and as a fork; both must end alike."""
        endings, lengths = [], list[Length]()
        if not self.command.prepare:
            self.reset()
            for line in self._lines:
                module = "tfmann.nmt" if line[0].startswith("-") else "tfmann"
                with self.log.open("ab") as stream:
                    argv = [sys.executable, "-m", module, *line]
                    process = subprocess.run(argv, cwd=ROOT, stdout=stream, stderr=stream)
                assert process.returncode == 0, self.log.read_text()
            endings.append(ending(self.out))
        self.reset()
        for line in self._lines:
            begun = time.perf_counter()
            ended = self.forks.run(line, self.log, None, self._prepare, root=self.out)
            assert ended.status == 0, self.log.read_text()
            lengths.append(Length(ended.cpu, ended.calls, time.perf_counter() - begun))
        endings.append(ending(self.out))
        differing = differences(endings[0], endings[-1])
        if differing:
            raise SystemExit(f"a fork does not end as a process of its own: {differing}")
        print(f"undisturbed: {lengths}", file=sys.stderr, flush=True)
        return lengths, endings[-1]


def draw(
    stream: random.Random, lengths: Sequence[Length], waits: bool = False
) -> list[dict[str, Any]]:
    """Draws one or two moments to kill a command, and then its continuation."""
    kills = []
    for _ in range(2 if stream.random() < 0.3 else 1):
        kill: dict[str, Any] = {"signal": int(stream.choice((signal.SIGKILL, signal.SIGTERM)))}
        line = stream.randrange(len(lengths)) if len(lengths) > 1 else 0
        if stream.random() < 0.5:
            unit = "seconds" if waits else "cpu"
            kill[unit] = round(stream.uniform(0, getattr(lengths[line], unit)), 3)
        else:
            kill["call"] = stream.randrange(lengths[line].calls)
            kill["delay"] = round(stream.choice((0, stream.uniform(0, 0.005))), 5)
        kills.append({**kill, "line": line} if len(lengths) > 1 else kill)
    return kills

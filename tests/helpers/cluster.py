"""Several processes that train together on this machine, as TF_CONFIG names them."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from helpers import tiny_runs
from helpers.replicas import python_path

SECONDS = 900  # a process that takes longer hangs


def addresses(count):
    """Addresses of this machine at which nothing listens."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{listener.getsockname()[1]}" for listener in sockets]


def environments(count):
    """Returns the environment of each of `count` workers."""
    cluster = {"worker": addresses(count)}
    tasks = [{"type": "worker", "index": index} for index in range(count)]
    return [
        {
            **os.environ,
            "TF_CONFIG": json.dumps({"cluster": cluster, "task": task}),
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "PYTHONPATH": python_path(),
        }
        for task in tasks
    ]


class Cluster:
    """Processes that end with the block at the latest; `outputs`: what each has printed so far."""

    def __init__(self, commands, folder, of=None):
        """Starts one process a command, an argument list for Python, `of` so many workers."""
        folder.mkdir(parents=True, exist_ok=True)
        self._logs = [folder / f"worker_{index}" for index in range(len(commands))]
        self.processes = []
        of_workers = environments(of or len(commands))
        for command, log, environment in zip(commands, self._logs, of_workers):
            with open(log, "wb") as stream:
                self.processes.append(
                    subprocess.Popen(
                        [sys.executable, *command],
                        cwd=tiny_runs.ROOT,
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        stdout=stream,
                        stderr=subprocess.STDOUT,
                    )
                )

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        for process in self.processes:
            process.kill()
            process.wait()

    @property
    def outputs(self):
        return [log.read_text(errors="replace") for log in self._logs]

    def until(self, condition):
        """Waits for something to come true while all processes run."""
        end = time.monotonic() + SECONDS
        while not condition():
            ended = [process.returncode for process in self.processes if process.poll() is not None]
            assert not ended and time.monotonic() < end, (ended, self.outputs)
            time.sleep(0.02)

    def statuses(self):
        """Waits for all to end."""
        return [process.wait(SECONDS) for process in self.processes]


def train(argv, count, folder):
    """Starts the same command line of training on `count` workers."""
    return Cluster([["-m", "tfmann.nmt", *argv]] * count, folder)


def run_main(path, count, folder, *arguments):
    """Calls `main(folder, ...)` of the test module at `path` on each worker; it prints `done`."""
    module = Path(path).stem
    code = f"import sys; sys.path.insert(0, {str(Path(path).parent)!r}); "
    code += f"import {module}; {module}.main({str(folder)!r}, *{arguments!r})"
    with Cluster([["-c", code]] * count, folder) as started:
        assert started.statuses() == [0] * count, started.outputs
        assert all("done" in outputs for outputs in started.outputs), started.outputs

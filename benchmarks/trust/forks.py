"""Many runs of the command line from one start of TensorFlow.

A server imports tfmann and TensorFlow but runs no operation: TensorFlow starts its threads with the
first one, so a fork loses none. For each command line it forks a child, which calls
`tfmann.nmt.main` or, if the first word is a command, `tfmann`'s. A run is a process of its own and
can be killed, and does not spend the seconds of loading TensorFlow.

A child can be made to kill itself and the processes that it has started: after some seconds of CPU
time, or at its n-th call to the file system within a folder plus a delay, which do not depend on
the load of the machine; or after some seconds, for a command that waits for other processes.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
_CALLS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"}  # as audit events


class Ended(NamedTuple):
    """The end of a child process."""

    status: int  # negative: the signal that ended it
    cpu: float  # seconds
    calls: int  # to the file system; 0 after a signal


class Forks:
    """The client of the server; it runs one child at a time."""

    def __init__(self, path: str | os.PathLike[str] = ROOT):
        """Starts the server; the function of `prepare` is imported from `path`."""
        self._pid = 0  # of the last child
        self._server = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.trust.forks"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True,
            env={
                **os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1",
                "PYTHONPATH": os.fspath(path),
            },
        )  # fmt: skip

    def start(
        self,
        argv: Sequence[str],
        log: str | os.PathLike[str],
        kill: dict[str, Any] | None = None,
        prepare: Sequence[Any] = (),
        file_size: int = 0,
        root: str | os.PathLike[str] = "",
    ) -> int:
        """Starts a run and returns its process id, which is also that of its group.

        Args:
          argv: the command line.
          log: file to append the output to.
          kill: `{"signal": s, "cpu": seconds}`, `{"signal": s, "seconds": seconds}` or
            `{"signal": s, "call": n, "delay": seconds}`.
          prepare: `module:function` and its arguments, called in the child first.
          file_size: limit for the size of files; 0 = no limit.
          root: folder whose opened files are counted; that of `--out_dir` if empty.
        """
        self._send([list(argv), os.fspath(log), kill, list(prepare), file_size, os.fspath(root)])
        self._pid = self._receive()
        return self._pid

    def wait(self) -> Ended:
        """Waits for the end of the run."""
        return Ended(*self._receive())

    def run(self, *args: Any, **options: Any) -> Ended:
        """Starts a run and waits for its end."""
        self.start(*args, **options)
        return self.wait()

    def close(self) -> None:
        """Ends the server and a child that is still running."""
        for group in (self._server.pid, self._pid):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group or self._server.pid, signal.SIGKILL)
        self._server.communicate()

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _send(self, request: Any) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()

    def _receive(self) -> Any:
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        if not line:
            raise RuntimeError(f"the fork server has ended with {self._server.wait()}")
        return json.loads(line)


def serve() -> None:
    """Runs the server: reads a request, writes the process id and then the end of the run."""
    from tensorflow.python.eager import context

    from tfmann.cli import predict, train  # noqa: F401 (so that no child has to)

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # other output must not mix with answers
    ended = None  # a child that is not reaped while it may still be signalled
    for line in sys.stdin:
        if ended is not None:
            os.waitpid(ended, 0)
        assert context.context()._context_handle is None, "an operation was run before the fork"
        counter = os.memfd_create("calls")
        ended = os.fork()
        if not ended:
            os.setpgid(0, 0)
            _child(json.loads(line), counter)
        with contextlib.suppress(OSError):  # the child has done so, or has ended
            os.setpgid(ended, ended)
        answers.write(f"{ended}\n")
        end = os.waitid(os.P_PID, ended, os.WEXITED | os.WNOWAIT)
        assert end is not None  # WNOHANG was not given
        status = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
        calls = int(os.pread(counter, 20, 0) or 0)
        os.close(counter)
        answers.write(json.dumps([status, cpu_of(ended), calls]) + "\n")


def cpu_of(pid: int) -> float:
    """Returns the seconds of a process and of those that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _child(request: list[Any], counter: int) -> None:
    """Runs the command line of a request (`Forks.start`); never returns."""
    argv, log, kill, prepare, file_size, root = request
    status = 1
    try:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for number, source in ((0, os.open(os.devnull, os.O_RDONLY)), (1, out), (2, out)):
            os.dup2(source, number)
        if file_size:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
        roots = [flag.partition("=")[2] for flag in argv if flag.startswith("--out_dir=")]
        calls = _watch(root or (roots[0] if roots else os.devnull), kill or {})
        if prepare:
            module, _, function = prepare[0].partition(":")
            getattr(importlib.import_module(module), function)(*prepare[1:])
        from tfmann import nmt
        from tfmann.cli import main as commands

        try:
            status = (nmt if argv[0].startswith("-") else commands).main(argv)
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 1
        if sys.stdout is not None:
            sys.stdout.flush()
        os.pwrite(counter, str(next(calls)).encode(), 0)
    except BaseException:  # as Python shows it
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _watch(root: str, kill: dict[str, Any]) -> itertools.count:
    """Counts calls to the file system, and sends the signal when its moment has come."""
    calls = itertools.count()

    def send() -> None:
        os.killpg(0, kill["signal"])

    def on_event(event: str, args: tuple) -> None:
        if event not in _CALLS:
            return
        if event == "open" and not (isinstance(args[0], str) and args[0].startswith(root)):
            return
        if next(calls) == kill.get("call"):
            if kill.get("delay"):
                threading.Timer(kill["delay"], send).start()
            else:
                send()

    def watch_cpu() -> None:
        begun = time.process_time()
        while time.process_time() - begun < kill["cpu"]:
            time.sleep(0.002)
        send()

    sys.addaudithook(on_event)
    if "seconds" in kill:
        timer = threading.Timer(kill["seconds"], send)
        timer.daemon = True
        timer.start()
    if "cpu" in kill:
        threading.Thread(target=watch_cpu, daemon=True).start()
    return calls


if __name__ == "__main__":
    serve()

"""Two workers that train together on 127.0.0.1, of which one is killed; resumed, both end alike."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from benchmarks.trust.command_kills import STOPPED, Length, draw
from benchmarks.trust.ending import differences, ending
from benchmarks.trust.forks import Ended, Forks
from benchmarks.trust.killable import training_flags

_WORKERS = 2
_LOST = 75  # the status of a worker that has lost the others: the same command resumes
_PATIENCE = 180.0  # seconds until a worker without the other is ended, as an operator would


class Cluster:
    """The short training by two workers, each with a fork server of its own."""

    def __init__(self, name: str, folder: Path):
        """Trains undisturbed, on the corpus in `folder`."""
        del name  # there is one cluster
        self.folder, self.out = folder, folder / "out"
        self._servers = contextlib.ExitStack()
        self.workers = [self._servers.enter_context(Forks()) for _ in range(_WORKERS)]

    def __enter__(self) -> Cluster:
        try:
            ends = self._train({}, 0)
            assert [end.status for end in ends] == [0, 0], self._messages()
            self._lengths = [Length(end.cpu, max(1, end.calls), 0.0) for end in ends]
            self._ending = ending(self.out)
        except BaseException:
            self._servers.close()
            raise
        print(f"undisturbed: {self._lengths}", file=sys.stderr, flush=True)
        return self

    def __exit__(self, *error: object) -> None:
        self._servers.close()

    def point(self, stream: random.Random) -> dict[str, Any]:
        """Kills a worker and runs both again; see `Subject.point`."""
        missed, kills = 0, list[dict[str, Any]]()
        while not kills:
            shutil.rmtree(self.out, ignore_errors=True)
            for index in range(_WORKERS):
                self._log(index).unlink(missing_ok=True)
            cpu = 0.0
            for kill in draw(stream, self._lengths):
                victim = kill["line"]  # the moments of each command line are those of a worker
                ends = self._train(kill, victim)
                cpu += sum(end.cpu for end in ends)
                if ends[victim].status not in STOPPED:
                    missed += 1
                    break
                kills.append({**kill, "status": ends[victim].status,
                              "others": ends[1 - victim].status})  # fmt: skip
            if any(end.status not in (0, _LOST, *STOPPED) for end in ends):
                break
        if any(end.status for end in ends):
            ends = self._train({}, 0)
            cpu += sum(end.cpu for end in ends)
        failed = [end.status for end in ends if end.status]
        differs = [] if failed else differences(ending(self.out), self._ending)
        if failed or "Traceback" in self._messages():
            differs.append(f"statuses {failed}: {self._messages()[-600:]}")
        return {"kills": kills, "missed": missed, "differs": differs, "cpu": cpu}

    def _train(self, kill: dict[str, Any], victim: int) -> list[Ended]:
        """Starts both workers and waits for their ends."""
        addresses, ends = free_addresses(), dict[int, Ended]()
        argv = training_flags(self.folder, self.out)
        pids, threads = [], []
        for index, worker in enumerate(self.workers):
            task = {"type": "worker", "index": index}
            text = json.dumps({"cluster": {"worker": addresses}, "task": task})
            prepare = ["benchmarks.trust.cluster_kills:join", text]
            moment = kill if kill and index == victim else None
            pids.append(worker.start(argv, self._log(index), moment, prepare, root=self.out))

            def wait(index: int = index, worker: Forks = worker) -> None:
                ends[index] = worker.wait()

            threads.append(threading.Thread(target=wait))
            threads[-1].start()
        threads[victim].join()
        for index in range(_WORKERS):
            threads[index].join(_PATIENCE)
            if threads[index].is_alive():
                os.kill(pids[index], signal.SIGKILL)
                threads[index].join()
        return [ends[index] for index in range(_WORKERS)]

    def _log(self, index: int) -> Path:
        return self.folder / f"worker-{index}.log"

    def _messages(self) -> str:
        return "".join(self._log(i).read_text() for i in range(_WORKERS) if self._log(i).exists())


def free_addresses() -> list[str]:
    """Returns addresses of this machine at which nothing listens."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(_WORKERS)]
        for listener in sockets:
            listener.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{listener.getsockname()[1]}" for listener in sockets]


def join(text: str) -> None:
    """Makes this process a worker."""
    os.environ["TF_CONFIG"] = text

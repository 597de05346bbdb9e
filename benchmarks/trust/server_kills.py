"""A server that is killed while it starts or while it answers, and started again."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.trust.ending import differences, ending
from benchmarks.trust.forks import Ended, Forks, cpu_of
from benchmarks.trust.killable import training_flags

_CALLERS = 3
_SECONDS = 300.0  # for a start or an end; a server that takes longer hangs
_ENDS = (0, -signal.SIGTERM, 143)  # of SIGTERM: after its answers, or while it starts


class Server:
    """`tfmann serve` with a trained run; the next start must answer alike."""

    def __init__(self, name: str, folder: Path):
        """Trains the run that is served, on the corpus in `folder`."""
        del name  # there is one server
        self.out, self._log, self._corpus = folder / "out", folder / "log", folder
        text = (folder / "train.src").read_text(encoding="utf-8").splitlines()[:24]
        self._requests = [text[begin : begin + 2] for begin in range(0, len(text), 2)]
        self.forks = Forks()

    def __enter__(self) -> Server:
        try:
            ended = self.forks.run(training_flags(self._corpus, self.out / "run"), self._log)
            assert ended.status == 0, self._log.read_text()
            port = self._start({})
            assert port is not None, self._log.read_text()
            self._cpu = cpu_of(self._pid)
            self._answers = [ask(port, lines)[1] for lines in self._requests]
            assert self._stop(signal.SIGTERM).status == 0, self._log.read_text()
            self._ending = ending(self.out)
        except BaseException:
            self.forks.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.forks.close()

    def point(self, stream: random.Random) -> dict[str, Any]:
        """Kills the server, starts it again and asks it everything; see `Subject.point`."""
        number = int(stream.choice((signal.SIGKILL, signal.SIGTERM)))
        kill: dict[str, Any] = {"signal": number}
        if stream.random() < 0.3:
            kill["cpu"] = round(stream.uniform(0, self._cpu), 3)
        else:
            kill["requests_for"] = round(stream.uniform(0, 1), 3)
        differs: list[str] = []
        port = self._start(kill if "cpu" in kill else {})
        if port is not None:
            callers = [Caller(port, self._requests, self._answers, n) for n in range(_CALLERS)]
            time.sleep(kill.get("requests_for", 0))
            ended = self._stop(number)
            for caller in callers:
                differs += caller.stop()
            kill["answered"] = sum(caller.right for caller in callers)
        else:
            ended = self.forks.wait()
        kill["status"] = ended.status
        if ended.status not in (_ENDS if number == signal.SIGTERM else (-signal.SIGKILL,)):
            differs.append(f"killed, it ended with {ended.status}")
        cpu = ended.cpu
        messages = self._log.read_text()
        port = self._start({})
        if port is None:
            differs.append(f"it did not start again: {self.forks.wait()}")
        else:
            answers = [ask(port, lines)[1] for lines in self._requests]
            differs += [] if answers == self._answers else ["answers"]
            ended = self._stop(signal.SIGTERM)
            cpu += ended.cpu
            differs += [f"stopped, it ended with {ended.status}"] if ended.status else []
        messages += self._log.read_text()
        if "Traceback" in messages:
            differs.append(messages[-300:])
        differs += differences(ending(self.out), self._ending)
        return {"kills": [kill], "missed": 0, "differs": differs, "cpu": cpu}

    def _start(self, kill: dict[str, Any]) -> int | None:
        """Starts the server; returns its port, or None if it ends first."""
        self._log.unlink(missing_ok=True)
        argv = ["serve", f"--model={self.out / 'run'}", "--port=0"]
        self._pid = self.forks.start(argv, self._log, kill, root=self.out)
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            port = port_in(self._log)
            if port is not None:
                return port
            if Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return None
            time.sleep(0.02)
        raise RuntimeError(f"the server has not started: {self._log.read_text()}")

    def _stop(self, number: int) -> Ended:
        os.kill(self._pid, number)
        return self.forks.wait()


def port_in(log: Path) -> int | None:
    """Returns the port that a server has written into its log, if it has."""
    text = log.read_text() if log.exists() else ""
    match = re.search(r"http://127\.0\.0\.1:(\d+)", text)
    return int(match[1]) if match else None


class Caller:
    """A thread that asks a server until it is gone; `right`: answers that were as expected."""

    def __init__(self, port: int, requests: list[list[str]], answers: list[Any], first: int):
        """Begins with the request number `first`."""
        self.right = 0
        self._wrong: list[str] = []
        self._stopped = False
        arguments = port, requests, answers, first
        self._thread = threading.Thread(target=self._call, args=arguments)
        self._thread.start()

    def stop(self) -> list[str]:
        """Ends the thread; returns what was wrong."""
        self._stopped = True
        self._thread.join()
        return self._wrong

    def _call(self, port: int, requests: list, answers: list, first: int) -> None:
        number = first
        with contextlib.suppress(OSError, http.client.HTTPException):  # the server is gone
            while not self._stopped:
                index = number % len(requests)
                status, answer = ask(port, requests[index])
                number += 1
                if status == 503:  # it stops
                    return
                if answer != answers[index]:
                    self._wrong.append(f"request {index}: {status} {answer}")
                self.right += answer == answers[index]


def ask(port: int, lines: list[str]) -> tuple[int, Any]:
    """Returns the status, and the translations or the error."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    try:
        body = json.dumps({"lines": lines})
        connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read().decode()
        if response.status != 200:
            return response.status, answer
        return 200, json.loads(answer)["lines"]
    finally:
        connection.close()

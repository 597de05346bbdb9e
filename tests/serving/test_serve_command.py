"""`tfmann serve`: its refusals, and its end."""

import http.client
import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from helpers.command_line import ROOT, fails

from tfmann.cli import serve
from tfmann.serving import server

INSTALLED = all(importlib.util.find_spec(name) for name in server.EXTRA)
needs_extra = pytest.mark.skipif(not INSTALLED, reason="the extra `serve` is not installed")


def test_a_missing_extra_is_named_with_its_cure(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(server, "EXTRA", ("starlette_of_no_one",))
    words = r"needs starlette_of_no_one, of the extra `serve`: pip install starlette_of_no_one$"
    fails([f"--model={tmp_path}"], capsys, 2, words, main=serve.main)


@needs_extra
def test_a_directory_without_a_model_is_refused(capsys, tmp_path):
    fails([f"--model={tmp_path}"], capsys, 1, "holds no trained model", main=serve.main)


@needs_extra
def test_a_port_that_is_taken_is_refused_at_once(capsys, model):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        words = f"port {port} on 127.0.0.1 is taken"
        fails([f"--model={model}", f"--port={port}"], capsys, 1, words, main=serve.main)


@needs_extra
@pytest.mark.parametrize(
    "flag, words",
    [
        ("--host=no.such.host.invalid", "no such host"),
        ("--host=192.0.2.1", "cannot listen on 192.0.2.1"),
        ("--max_lines=0", "expected more than 0"),
        ("--max_seconds=nan", "--max_seconds: expected more than 0"),
        ("--session_minutes=0", "expected more than 0"),
        ("--session_minutes=nan", "--session_minutes: expected more than 0"),
        ("--beam_width=0", "beam_width: 0 is below"),
        ("--shortlist=none", "shortlist: there is no file none"),
        ("--infer_mode=greedy --beam_width=5", "--beam_width has no effect"),
        # a request may ask for a beam, which reads the weight
        ("--infer_mode=greedy --length_penalty_weight=1 --shortlist=none", "there is no file none"),
    ],
)
def test_what_cannot_be_done_is_refused(capsys, model, flag, words):
    status = 2 if "more than" in words or "beam" in words else 1
    fails([f"--model={model}", "--port=0", *flag.split()], capsys, status, words, main=serve.main)


def health(port):
    """The status of `GET /health`; None where nothing takes the connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


SLOW = """
import asyncio, sys
from starlette.applications import Starlette
from starlette.routing import Route
from tfmann.serving import server

async def answer(request):
    print("asked", file=sys.stderr, flush=True)
    await asyncio.sleep(600)

with server.bind("127.0.0.1", 0) as listener:
    print(listener.getsockname()[1], file=sys.stderr, flush=True)
    stop = lambda: print("stopping", file=sys.stderr, flush=True)
    server.serve(Starlette(routes=[Route("/", answer)]), listener, stop)
"""


@needs_extra
def test_a_second_interrupt_ends_the_server_at_once():
    program = subprocess.Popen(
        [sys.executable, "-c", SLOW], stderr=subprocess.PIPE, cwd=ROOT, text=True
    )
    try:
        connection = http.client.HTTPConnection("127.0.0.1", int(program.stderr.readline()))
        connection.request("GET", "/")
        assert program.stderr.readline() == "asked\n"
        for rest in ("stopping\n", ""):  # one line after the first, and none after the second
            program.send_signal(signal.SIGINT)
            assert program.stderr.readline() == rest
        assert program.wait(60) == -signal.SIGINT
        connection.close()
    finally:
        program.kill()
        program.stderr.close()


@pytest.mark.thorough
@needs_extra
def test_sigterm_lets_what_has_begun_be_finished(model):
    program = subprocess.Popen(
        [sys.executable, "-m", "tfmann", "serve", f"--model={model}", "--port=0"],
        stderr=subprocess.PIPE, cwd=ROOT, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        text=True,
    )  # fmt: skip
    try:
        port = next(
            int(match[1])
            for match in (re.search(r"http://127.0.0.1:(\d+)", line) for line in program.stderr)
            if match
        )
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        body = json.dumps({"lines": ["der hund und die katze"] * 200, "beam": 4})
        answers = []

        def post_lines():
            connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
            answers.append(json.loads(connection.getresponse().read()))

        caller = threading.Thread(target=post_lines)
        caller.start()
        waiting = 0
        while not waiting and caller.is_alive():  # until it has started
            time.sleep(0.02)
            metrics = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            metrics.request("GET", "/metrics")
            text = metrics.getresponse().read().decode()
            waiting = int(re.search(r"^tfmann_batch_lines_count (\d+)", text, re.M)[1])
            metrics.close()
        program.send_signal(signal.SIGTERM)
        statuses = [200]
        while statuses[-1] is not None and caller.is_alive():
            statuses.append(health(port))
        caller.join()
        connection.close()
        assert program.wait(60) == 0
        rest = program.stderr.read()
    finally:
        program.kill()
        program.stderr.close()
    assert len(answers[0]["lines"]) == 200
    assert statuses[-1] is None and set(statuses[:-1]) <= {200, 503}  # as docs/serving.md says
    assert "stopping" in rest and "Traceback" not in rest

"""Documents that continue, expire, and are refused where there are too many."""

import asyncio
import json
import threading
from types import SimpleNamespace

import pytest

from tfmann.decoding.translation import Translation
from tfmann.serving import service
from tfmann.serving.engine import Result
from tfmann.serving.requests import Limits, RequestError, read_translate
from tfmann.serving.service import _answer, _Work
from tfmann.serving.sessions import Sessions


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_a_session_expires_after_its_last_use():
    clock = Clock()
    sessions = Sessions(9, 10.0, clock)
    sessions.put("a", "left a", 1)
    clock.now = 6.0
    sessions.put("b", "left b", 1)
    sessions.put("a", "left more", 2)
    clock.now = 15.0
    assert sessions.peek("a").state == "left more" and sessions.peek("a").sentences == 2
    assert len(sessions) == 2
    clock.now = 16.5
    assert sessions.get("a") is None and len(sessions) == 0


@pytest.mark.parametrize("queued", [False, True])
def test_a_document_does_not_expire_while_its_next_line_is_translated(queued):
    clock = Clock()
    sessions = Sessions(9, 10.0, clock)
    sessions.put("a", "old", 1)
    work = _Work(sessions, SimpleNamespace(session="a", lines=["x"], beam=0, required=()))
    clock.now = 9.0
    assert work.begin().state == "old"
    clock.now = 11.0
    if queued:  # the request after it looks whether there is room
        assert sessions.get("a").state == "old"
    assert len(sessions) == 1
    work.end(Result([], "new", 1, True))
    assert sessions.peek("a").state == "new" and sessions.peek("a").sentences == 2
    clock.now = 21.5
    assert len(sessions) == 0


def test_a_document_that_was_ended_meanwhile_is_not_saved():
    sessions = Sessions(9, 10.0, Clock())
    sessions.put("a", "old", 1)
    request = SimpleNamespace(session="a", lines=["x"], beam=0, required=())
    for ended in (False, True):
        work = _Work(sessions, request)
        assert work.begin().state is not None
        if ended:
            assert sessions.end("a")
        work.end(Result([], "new", 1, True))
        assert sessions.peek("a") is None if ended else sessions.peek("a").state == "new"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a\nb", ["a", "b"]),
        ("a\nb\n", ["a", "b"]),
        ("a\n\n", ["a", ""]),
        ("\n", [""]),
        ("", [""]),
        ("a\r\n", ["a\r"]),
    ],
)
def test_a_text_ends_as_a_file_does(text, lines):
    """Its last line break is no blank line, which would end a session's document."""
    request = read_translate(json.dumps({"text": text, "session": "s"}).encode(), Limits(), True)
    assert request.lines == lines
    n_best = [[Translation(line.upper(), -1.0, [], [], None)] for line in lines]
    answer = _answer(request, Result(n_best, None, 1, True), 1)
    assert answer["text"] == text.upper() and len(answer["scores"]) == len(lines)


def test_one_too_many_is_refused_and_none_is_dropped():
    clock = Clock()
    sessions = Sessions(2, 10.0, clock)
    sessions.put("a", 1, 1)
    sessions.put("b", 2, 1)
    with pytest.raises(RequestError, match="2 sessions already") as refused:
        sessions.get("c")
    assert refused.value.status == 503
    assert sessions.get("a").state == 1 and sessions.get("b").state == 2
    assert sessions.end("a") and not sessions.end("a")
    assert sessions.get("c") is None


def test_requests_of_a_session_keep_their_order_though_their_kinds_differ(monkeypatch):
    opened, batches = threading.Event(), []
    best = SimpleNamespace(text="x", score=0.0)

    class Engine:
        documents = True

        def __init__(self, model):
            self.model = model

        def most(self, beam):
            return 1

        def check(self, *required):
            pass

        def run(self, jobs, is_wanted):
            batches.append([job.lines[0] for job in jobs])
            assert opened.wait(10)
            return [Result([[best]], (job.state or "") + job.lines[0], 1, True) for job in jobs]

    monkeypatch.setattr(service, "Engine", Engine)
    hparams = SimpleNamespace(infer_batch_size=8, cell="cache")

    async def play():
        served = service.Service(SimpleNamespace(hparams=hparams, checkpoint="c"))

        def ask(line, **more):
            body = json.dumps({"lines": [line], **more}).encode()
            return asyncio.create_task(served.translate(body))

        async with served.batcher:
            tasks = [ask("0")]
            while not batches:
                await asyncio.sleep(0.001)
            tasks += [ask("1"), ask("2", session="me", beam=3), ask("3", session="me")]
            tasks.append(ask("4", session="me", prefixes=["p"]))
            await asyncio.sleep(0.01)
            opened.set()
            answers = await asyncio.gather(*tasks)
        sentences = [answer["session"]["sentences"] for answer in answers[2:]]
        return sentences, served._sessions.peek("me").state

    assert asyncio.run(play()) == ([1, 2, 3], "234")
    assert batches == [["0"], ["1"], ["2"], ["3"], ["4"]]

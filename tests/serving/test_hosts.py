"""A server on a loopback address answers requests to loopback hosts alone, with any Starlette."""

import asyncio
import json
import socket

import pytest

pytest.importorskip("starlette", reason="the extra `serve` is not installed")

from starlette.responses import PlainTextResponse  # noqa: E402
from starlette.routing import Route  # noqa: E402

from tfmann.errors import UserError  # noqa: E402
from tfmann.serving import server  # noqa: E402
from tfmann.serving.app import starlette  # noqa: E402


async def answer(request):
    return PlainTextResponse("hello")


def ask(listening, *host):
    """Status and body of one request to a server that listens there, without a network."""
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request"}

    headers = [(b"host", name.encode("latin-1")) for name in host]
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers}
    asyncio.run(starlette([Route("/", answer)], listening)(scope, receive, send))
    return sent[0]["status"], sent[1]["body"].decode()


@pytest.mark.parametrize("listening", ["127.0.0.1", "localhost", "::1", "127.0.0.2"])
@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:8000", "localhost:8000", "LocalHost", "[::1]", "[::1]:8000",
     "[0:0:0:0:0:0:0:1]:80", "127.0.0.2:8000"],
)  # fmt: skip
def test_a_loopback_host_is_answered(listening, host):
    assert ask(listening, host) == (200, "hello")


@pytest.mark.parametrize("listening", ["127.0.0.1", "::1"])
@pytest.mark.parametrize(
    "host",
    ["example.org", "example.org:8000", "127.0.0.1.example.org", "localhost.example.org", "",
     "[::2]:8000", "[::1].example.org", "[::1]:80@example.org", "[example.org]", "192.0.2.1", "é"],
)  # fmt: skip
def test_another_host_is_refused_in_one_message(listening, host):
    status, body = ask(listening, host)
    assert status == 400 and "\n" not in json.loads(body)["error"]


def test_a_request_without_a_host_is_refused():
    assert ask("127.0.0.1")[0] == 400


@pytest.mark.parametrize("listening", ["0.0.0.0", "::", "192.0.2.1"])
def test_a_server_for_others_answers_every_host(listening):
    assert ask(listening, "example.org") == (200, "hello")


def test_the_address_that_a_server_prints_is_one_that_it_answers():
    """An IPv6 literal, from `--host` to the header that a browser sends."""
    try:
        listener = server.bind("::1", 0)
    except UserError as error:
        pytest.skip(f"this machine has no ::1: {error}")
    with listener:
        assert listener.family == socket.AF_INET6
        host = server.url(listener).partition("//")[2]
    assert host.startswith("[::1]:")
    assert ask("::1", host) == (200, "hello")

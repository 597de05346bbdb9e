"""A server of an invented corpus, for the tests that download."""

import pytest
from helpers.corpus_server import Server


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    running = Server()
    yield running
    running.http.shutdown()
    running.http.server_close()

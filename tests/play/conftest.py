"""The page of `tfmann play` in a browser, with the models that come with it."""

import pytest
import tensorflow  # noqa: F401 (before the page's thread, where a warning of its imports is an error)
from helpers import chromium
from helpers.http_server import served
from helpers.play_page import DRAWN

from tfmann.play import library


@pytest.fixture(scope="module")
def client():
    pytest.importorskip("starlette", reason="the extra `serve` is not installed")
    pytest.importorskip("uvicorn", reason="the extra `serve` is not installed")
    from tfmann.play import pages

    app = pages.make_app(library.Library(library.shipped()))
    with served(app) as client:
        yield client


@pytest.fixture(scope="module")
def browser():
    with chromium.chromium() as page:
        yield page


@pytest.fixture
def page(browser, client):
    browser.size(1200, 900)
    browser.errors.clear()
    browser.open(f"http://127.0.0.1:{client.port}/#model=luong")
    browser.wait(DRAWN.format(1))
    yield browser
    assert not browser.errors

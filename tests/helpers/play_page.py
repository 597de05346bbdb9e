"""What the page of `tfmann play` shows in a browser."""

import pytest

from . import chromium

needs_browser = pytest.mark.skipif(
    chromium.PROGRAM is None, reason="there is no Chromium (Debian: apt-get install chromium)"
)
DRAWN = (
    "document.querySelectorAll('.stage .target').length === {} "
    "&& !document.querySelector('.stage.busy')"
)


def text(page, selector):
    """The visible text of an element, with single spaces."""
    return page.run(f"document.querySelector({selector!r}).innerText.replace(/\\s+/g, ' ').trim()")


def choose(page, name):
    """Shows a shipped model at its first example."""
    page.run(
        f"(document.querySelector('#model-0').value = {name!r},"
        "document.querySelector('#model-0').dispatchEvent(new Event('change')))"
    )
    page.wait(f"location.hash.includes('model={name}&') && !document.querySelector('.stage.busy')")


def tips(page, title):
    """What the pointer shows in the figure of that title, cell by cell."""
    return page.run(
        "[...[...document.querySelectorAll('figure')]"
        f".find((figure) => figure.dataset.title === {title!r}).querySelectorAll('[data-tip]')]"
        ".map((cell) => cell.dataset.tip)"
    )


def trace_of(client, name):
    _, models = client.get("/play/models")
    lines = next(model for model in models["models"] if model["name"] == name)["examples"][0]
    return client.post("/play/trace", {"model": name, "lines": lines})[1]

"""Every link of the documentation leads somewhere, and every page can be found."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def links(page):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    found = re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", text)
    return [link or image for link, image in found if "://" not in (link or image)]


def headings(page):
    """What GitHub makes of a page's headings."""
    found = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in headings(target), f"{page.name}: {link}"


def test_every_page_can_be_found_from_the_index():
    shown = {(ROOT / "docs" / link.partition("#")[0]).resolve() for link in links(PAGES[2])}
    assert PAGES[2].name == "README.md"
    pages = {p for p in PAGES[3:] if p.name != "package.md"}  # of a package index
    assert pages <= shown


def test_the_readme_is_short_and_names_every_cell():
    text = PAGES[0].read_text("utf-8")
    assert len(text.splitlines()) <= 160
    cells = {path.stem for path in (ROOT / "tfmann" / "cells").glob("*.py")}
    named = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) - {"cell"}
    assert named <= cells and len(named) == 12

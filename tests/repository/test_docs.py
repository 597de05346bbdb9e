"""Every link of the documentation leads somewhere, and every page can be found."""

import ast
import re
from pathlib import Path

import pytest

import tfmann
from tfmann import config

ROOT = Path(__file__).resolve().parents[2]
INDEX = ROOT / "docs" / "README.md"
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").glob("*.md")),
]


def links(page):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    matches = re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", text)
    return [link or image for link, image in matches if "://" not in (link or image)]


def headings(page):
    """Returns the anchors of a page's headings that GitHub and the site make alike.

    The site joins words with one hyphen where GitHub writes two, as for the `&` of two authors.
    """
    texts = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in texts}
    return {anchor for anchor in anchors if "--" not in anchor}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link}"
        assert not anchor or anchor in headings(target), f"{page.name}: {link}"


def test_every_page_can_be_found_from_the_index():
    linked = {(ROOT / "docs" / link.partition("#")[0]).resolve() for link in links(INDEX)}
    pages = set((ROOT / "docs").glob("*.md")) - {INDEX, ROOT / "docs" / "package.md"}
    assert pages <= linked


def test_every_page_is_in_the_navigation_of_the_site():
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    listed = set(re.findall(r": ([\w/.]+\.md)$", navigation, re.MULTILINE))
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"package.md"}
    assert pages <= listed


def test_the_readme_is_short_and_names_every_cell():
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) <= 130
    cells = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) - {"cell"}
    assert cells == set(config.FIELDS["cell"].choices)


@pytest.mark.parametrize("page", ["README.md", "docs/package.md", "tfmann/cli/main.py"])
def test_prepared_corpora_go_where_a_checkout_has_nothing(page):
    """`tfmann prepare` refuses a folder with other files, such as data/ of a checkout."""
    text = (ROOT / page).read_text(encoding="utf-8")
    outputs = re.findall(r"tfmann prepare (?:.*\\\\?\n)*.*--output=([\w/]+)", text)
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert outputs and all(f"/{output.split('/')[0]}/" in ignored for output in outputs)
    assert all(f"--data={output}" in text for output in outputs)


def test_contributing_lists_the_floors_of_the_package():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("\n## Layout\n")[2]
    rows = re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE)
    architecture = (ROOT / "tests" / "repository" / "test_architecture.py").read_text("utf-8")
    floors = ast.literal_eval(re.search(r"^FLOORS = (\[.*?^\])", architecture, re.M | re.S)[1])
    assert [set(re.findall(r"`(\w+)`", row)) for row in rows] == floors


def test_the_changelog_has_the_usual_headings_and_this_version():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    versions = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert versions[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(tfmann.__version__)} \(\d{{4}}-\d\d-\d\d\)", versions[1])
    kinds = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_citation_is_of_this_version():
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(r"^version: (.+)$", text, re.MULTILINE)[1] == tfmann.__version__

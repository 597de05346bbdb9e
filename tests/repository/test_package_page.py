"""Commands in the documentation, and the page that a package index shows."""

import configparser
import re
import shlex
from pathlib import Path

import pytest
from helpers.lock import setup_list

from tfmann import nmt
from tfmann.cli import main, prepare, serve, translate
from tfmann.utils import resources

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "data").glob("*.md")])


def command_lines(path):
    """The command lines of a page, one each, without comments."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if re.match(r"(tfmann|pip) ", line)]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_names_commands_that_there_are(path):
    code = re.findall(r"`(tfmann [^`]*)`", path.read_text(encoding="utf-8"))
    commands = [argv[1] for argv in [*(text.split() for text in code), *command_lines(path)]
             if argv[0] == "tfmann"]  # fmt: skip
    existing = {*main.COMMANDS, "version", "help", "-h", "--version", "COMMAND"}
    assert set(commands) <= existing, set(commands) - existing


def test_the_page_of_the_package_can_be_followed():
    page = ROOT / "docs" / "package.md"
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    assert setup["metadata"]["long_description"] == f"file: {page.relative_to(ROOT)}"
    modules = {"prepare": prepare, "translate": translate, "serve": serve}
    parsers = {name: module._parser() for name, module in modules.items()}
    followed = set()
    for program, *rest in command_lines(page):
        if program == "pip" or rest[0] in ("-h", "demo", "play", "settings", "reproduce", "report"):
            continue
        command = main.COMMANDS[rest[0]]
        followed.add(rest[0])
        if rest[0] in parsers:
            parsers[rest[0]].parse_args(rest[1:])
            continue
        values, _ = nmt.parse([*command.first, *rest[1:]])
        if values.hparams_path:
            assert resources.settings_path(values.hparams_path)
    assert followed == {"prepare", "train", "translate", "serve", "evaluate", "export"}


def test_the_page_of_the_package_points_nowhere_in_the_repository():
    text = (ROOT / "docs" / "package.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]*)\)|(?:src|href)=\"([^\"]*)\"", text)
    assert all("".join(link).startswith("https://") for link in links), links


def test_the_addresses_of_the_package_are_those_of_the_readme():
    addresses = dict(line.split(" = ") for line in setup_list("metadata", "project_urls"))
    assert len(addresses) >= 5
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"({address})" in readme for address in addresses.values()), addresses
    assert all(len(label) <= 32 for label in addresses), "more than a package index takes"

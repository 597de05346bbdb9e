"""The lock: every version that is installed, with the hashes of its files."""

import configparser
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(r"^([\w.-]+)==([^\s;]+)", re.MULTILINE)


def normalise_name(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text):
    return {(normalise_name(package), version) for package, version in PIN.findall(text)}


def locked_pins():
    return pins((ROOT / "requirements.lock").read_text(encoding="utf-8"))


def test_the_pins_of_tools_are_the_newest_of_the_lock():
    def number(version):
        return [int(part) for part in version.split(".")]

    tools = ["mypy", "pytest", "ruff"]
    done = subprocess.run(
        ["sh", "scripts/pins.sh", *tools], cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    for tool, line in zip(tools, lines):
        versions = [version for package, version in locked_pins() if package == tool]
        assert line == f"{tool}=={max(versions, key=number)}"
    assert len(lines) == len(tools)


def test_every_locked_version_has_hashes():
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    entries = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert len(entries) == len(PIN.findall(text))
    for entry in entries:
        lines = [line for line in entry.splitlines()[1:] if not line.startswith("#")]
        hashes = [re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in lines]
        assert hashes and all(hashes)


def test_the_lock_has_all_requirements():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    requirements = [setup["options"]["install_requires"], setup["options.extras_require"]["test"]]
    lines = [line.strip() for text in requirements for line in text.splitlines()]
    names = {
        normalise_name(re.split(r"[<>=!;\[ ]", line)[0])
        for line in lines
        if line and line[0] != "#"
    }
    assert len(names) > 10
    assert names <= {package for package, _ in locked_pins()}

"""The versions in requirements.lock, and the Pythons that they are for."""

from __future__ import annotations

import configparser
import re

from helpers.bootstrap_machine import ROOT
from packaging.requirements import Requirement

TEXT = (ROOT / "requirements.lock").read_text(encoding="utf-8")
ENTRIES = re.split(r"^(?=[\w.-]+==)", TEXT, flags=re.MULTILINE)[1:]


def setup_list(section: str, key: str) -> list[str]:
    """The lines of a list in setup.cfg."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    lines = (line.strip() for line in setup.get(section, key).splitlines())
    return [line for line in lines if line and not line.startswith("#")]


PYTHONS = [
    name.rpartition(" ")[2]
    for name in setup_list("metadata", "classifiers")
    if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", name)
]


def applies(requirement: Requirement, python: str) -> bool:
    environment = {"python_version": python, "python_full_version": f"{python}.4"}
    return requirement.marker is None or requirement.marker.evaluate(environment)


def pins(python: str) -> dict[str, str]:
    """The version of each package on a Python."""
    locked = [Requirement(entry.split(" \\\n", 1)[0]) for entry in ENTRIES]
    locked = [pin for pin in locked if applies(pin, python)]
    versions = {pin.name: str(pin.specifier).removeprefix("==") for pin in locked}
    assert len(versions) == len(locked), f"two versions of a package on Python {python}"
    return versions

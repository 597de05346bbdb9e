"""Machines of fake commands to run `make` on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from helpers.bootstrap_machine import ROOT, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def checkout(machine: Machine) -> Machine:
    """The machine with what `make install` needs, and a copy of what it reads."""
    tools = "make sh awk cat cp env mkdir rm sed sleep tail touch"
    for tool in tools.split():
        path = shutil.which(tool)
        if path is None:
            pytest.skip(f"{tool} is not installed")
        (machine.bin / tool).symlink_to(path)
    for name in ("Makefile", "setup.cfg", "requirements.lock"):
        shutil.copy(ROOT / name, machine.checkout)
    shutil.copytree(ROOT / "scripts", machine.checkout / "scripts")
    return machine

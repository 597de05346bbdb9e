"""Machines of fake commands to run `make` on, and a wheel of the checkout."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.bootstrap_machine import ROOT, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def checkout(machine: Machine) -> Machine:
    """The machine with what `make install` needs, and a copy of what it reads."""
    machine.add_tools(
        "make", "sh", "awk", "cat", "cp", "env", "mkdir", "rm", "sed", "sleep", "tail", "touch"
    )
    for name in ("Makefile", "setup.cfg", "requirements.lock"):
        shutil.copy(ROOT / name, machine.checkout)
    shutil.copytree(ROOT / "scripts", machine.checkout / "scripts")
    return machine


@pytest.fixture(scope="session")
def copied_files() -> list[str]:
    """What the Dockerfile copies from the checkout."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE)
    return [source for line in lines for source in line.split()[:-1]]


@pytest.fixture(scope="session")
def wheel(copied_files: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of a copy of these files alone."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in copied_files:
        target = source / name
        target.parent.mkdir(exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, target)
    script = f"from setuptools import build_meta; build_meta.build_wheel({str(folder)!r})"
    argv = [sys.executable, "-c", script]
    done = subprocess.run(argv, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("tfmann-*.whl")
    return built

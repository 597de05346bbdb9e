"""`.ci/run` tests on Python 3.11, whatever newer one is there; `all` adds a part on others."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from helpers.bootstrap_machine import ROOT, Machine


@pytest.fixture
def ci(machine: Machine) -> Machine:
    """A machine whose `make` notes the interpreter and the target that it was given."""
    machine.add_tools("bash", "cat", "dirname", "grep", "mktemp", "rm", "tail", "tee")
    machine.add(
        "make",
        'for word in "$@"; do case $word in *=*) export "$word" ;; esac; done\n'
        'for word in "$@"; do case $word in\n'
        "-* | *=*) ;;\n"
        '*) echo "$word ${PYTHON-none} ${TENSORFLOW-}" >>make.calls ;;\n'
        "esac; done",
    )
    machine.add("chromium", "exit 0")
    folder = machine.checkout / ".ci"
    folder.mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder)
    return machine


def calls_of_make(ci: Machine) -> list[list[str]]:
    path: Path = ci.checkout / "make.calls"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


USUAL = ["install", "check", "docs", "test", "package", "demo"]


def test_the_usual_steps_run_on_python_3_11(ci: Machine):
    for version in ("3.11", "3.13"):
        ci.add_python(f"python{version}", version)
    result = ci.run("bash", ".ci/run", HOME=str(ci.checkout))
    assert result.returncode == 0, result.stderr
    assert calls_of_make(ci) == [[target, f"{ci.bin}/python3.11"] for target in USUAL]


def test_all_steps_include_the_longer_ones(ci: Machine):
    for version in ("3.11", "3.13"):
        ci.add_python(f"python{version}", version)
    result = ci.run("bash", ".ci/run", "all", HOME=str(ci.checkout))
    assert result.returncode == 0, result.stderr
    calls = calls_of_make(ci)
    assert [target for target, *_ in calls] == [*USUAL, "test-thorough", "test-avx2", "test-next"]
    for target, python, *_ in calls:
        version = "3.13" if target == "test-next" else "3.11"
        assert python == f"{ci.bin}/python{version}"
    assert "no Python 3.12 is here" in result.stdout


def test_nothing_runs_without_python_3_11(ci: Machine):
    ci.add_python("python3.13", "3.13")
    result = ci.run("bash", ".ci/run", HOME=str(ci.checkout))
    assert result.returncode == 1 and "no Python 3.11 is here" in result.stderr
    assert calls_of_make(ci) == []


def test_another_word_is_refused(ci: Machine):
    ci.add_python("python3.11", "3.11")
    result = ci.run("bash", ".ci/run", "al", HOME=str(ci.checkout))
    assert result.returncode == 2 and result.stderr == "usage: .ci/run [all]\n"
    assert calls_of_make(ci) == []


def test_later_pythons_test_the_lock_and_the_oldest_tensorflow_that_they_may_have(ci: Machine):
    for version in ("3.11", "3.12", "3.13"):
        ci.add_python(f"python{version}", version)
    result = ci.run("bash", ".ci/run", "all", HOME=str(ci.checkout))
    assert result.returncode == 0, result.stderr
    assert [call[1:] for call in calls_of_make(ci) if call[0] == "test-next"] == [
        [f"{ci.bin}/python3.13", "lock"],
        [f"{ci.bin}/python3.12", "2.19.0"],
    ]

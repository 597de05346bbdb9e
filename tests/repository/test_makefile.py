"""Targets and variables of the Makefile."""

from __future__ import annotations

import re

import pytest
from helpers.bootstrap_machine import ROOT, Machine


def test_make_says_in_one_line_what_is_missing(checkout: Machine):
    checkout.add_python("python3", "3.14")
    result = checkout.run("make", "install")
    assert result.returncode == 2
    messages = [line for line in result.stderr.splitlines() if not line.startswith("make")]
    assert len(messages) == 1
    assert "Python 3.9 to 3.13 is missing" in messages[0]
    assert not (checkout.checkout / ".venv").exists()


def test_make_alone_lists_every_target(checkout: Machine):
    listed = checkout.run("make").stdout
    targets = "install test lint check demo reproduce-vi-en reproduce-ro-en bench clean"
    for target in targets.split():
        assert f"  make {target} " in listed


@pytest.mark.parametrize(
    ("variables", "passed"),
    [
        ([], "-m tfmann reproduce vi-en"),
        (["SCALE=cpu"], '-m tfmann reproduce vi-en --scale="cpu"'),
        (
            ["CORPUS_DIR=/a b", "OUT_DIR=/c"],
            '-m tfmann reproduce vi-en --corpus_dir="/a b" --out_dir="/c"',
        ),
        (
            ["SCALE=cpu", "SEEDS=2 3", "ROWS=luong"],
            '-m tfmann reproduce vi-en --scale="cpu" --seeds="2 3" --rows="luong"',
        ),
    ],
)
def test_reproduce_passes_on_what_was_given(checkout: Machine, variables: list[str], passed: str):
    result = checkout.run("make", "--dry-run", "reproduce-vi-en", *variables)
    assert passed in " ".join(result.stdout.replace("\\\n", " ").split())


@pytest.mark.parametrize(
    ("target", "variables", "table"),
    [
        ("reproduce-cache", [], "cache-subtitle"),
        ("reproduce-cache", ["DOMAIN=news"], "cache-news"),
        ("reproduce-synthetic-tense", ["DOMAIN=news"], "synthetic-tense"),
        ("reproduce-synthetic-senses", [], "synthetic-senses"),
    ],
)
def test_a_target_has_its_table(checkout: Machine, target: str, variables: list[str], table: str):
    result = checkout.run("make", "--dry-run", target, *variables)
    assert f"-m tfmann reproduce {table} " in result.stdout


@pytest.mark.parametrize("target", ["reproduce-vien", "tset"])
def test_a_target_that_does_not_exist_is_named(checkout: Machine, target: str):
    result = checkout.run("make", target)
    assert result.returncode == 2
    assert result.stderr.startswith(f"there is no target {target}: make lists them\n")


def test_a_variable_that_no_target_knows_is_refused(checkout: Machine):
    misspelled = checkout.run("make", "-n", "reproduce-vi-en", "SEED=2", "SCALE=cpu")
    assert misspelled.returncode == 2 and "there is no variable SEED:" in misspelled.stderr
    fixed = checkout.run("make", "-n", "install", "VENV=/other")  # scripts write to .venv
    assert fixed.returncode == 2 and "there is no variable VENV:" in fixed.stderr


def test_every_variable_of_the_makefile_is_known(checkout: Machine):
    """A variable that a target or its script reads can be given on make's command line."""
    text = (ROOT / "Makefile").read_text()
    scripts = sorted((ROOT / "benchmarks/peers").glob("*.sh"))
    read = set(re.findall(r"\$\((?:if \$\(|or \$\()?([A-Z_]+)\)?[,)]", text))
    read |= {
        variable for path in scripts for variable in re.findall(r"\$\{([A-Z_]+):", path.read_text())
    }
    internal = {"INSTALLED", "PY", "VENV", "TABLE", "VARIABLES", "GIVEN", "UNKNOWN"}
    assert {"SCALE", "ROWS", "SEEDS", "PAIRS", "TORCH", "TENSORFLOW"} <= read
    for name in sorted(read - internal):
        result = checkout.run("make", "-n", "lint", f"{name}=x")
        assert result.returncode == 0, result.stderr

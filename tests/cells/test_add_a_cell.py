"""The worked example of docs/add_a_cell.md, executed in a copy of the project."""

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import tiny_runs

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "add_a_cell.md"
FILE = re.compile(r"^File: `([^`]+)`\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


# Lines for a file that exists, and the one line of it that they go above or below.
EDIT = re.compile(
    r"^In `([^`]+)`, (above|below) `([^`]+)`\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def files():
    return dict(FILE.findall(PAGE.read_text(encoding="utf-8")))


def edit(project):
    """Puts the page's lines into files of the project."""
    for name, side, anchor, lines in EDIT.findall(PAGE.read_text(encoding="utf-8")):
        path = project / name
        content = path.read_text(encoding="utf-8").splitlines(keepends=True)
        (number,) = (i for i, line in enumerate(content) if line.startswith(anchor))
        number += side == "below"
        path.write_text("".join([*content[:number], lines, *content[number:]]), encoding="utf-8")


def test_the_page_has_three_new_files_and_edits_the_registry():
    assert len(files()) == 3
    for name in files():
        assert not (ROOT / name).exists(), f"{name} exists already"
    edited = [name for name, *_ in EDIT.findall(PAGE.read_text(encoding="utf-8"))]
    assert edited == ["tfmann/config/cells.py"] * 3


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    project = tmp_path_factory.mktemp("add_a_cell") / "project"
    for folder in ("tfmann", "tests", "hparams"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, project / folder, ignore=ignored)
    for name in ("setup.cfg", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, project)
    for name, content in files().items():
        (project / name).write_text(content, encoding="utf-8")
    edit(project)
    return project


def run_in(project, *command):
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=project, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(project), "TF_CPP_MIN_LOG_LEVEL": "3"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_cell_of_the_page_follows_its_equations(project):
    test = "tests/cells/test_luong_coverage.py"
    assert "1 passed" in run_in(project, "pytest", "-q", "-p", "no:cacheprovider", test)


@pytest.mark.slow
def test_the_files_of_the_page_are_a_cell(project, tmp_path):
    run = functools.partial(run_in, project)
    sources = [name for name in files() if name.endswith(".py")] + ["tfmann/config/cells.py"]
    run("ruff", "check", "--isolated", "--line-length=100", *sources)
    tests = ["tests/repository/test_architecture.py", "tests/config/test_declarations.py"]
    tests += ["-k", "cover or cell"]
    assert " passed" in run("pytest", "-q", "-p", "no:cacheprovider", *tests)
    models = project / "tests" / "helpers" / "small_models.py"  # where the page ends
    first = '    "luong": {"cell": "luong"},\n'
    variant = '    "luong-coverage": {"cell": "luong_coverage"},\n'
    models.write_text(models.read_text("utf-8").replace(first, variant + first, 1), "utf-8")
    tests = ["tests/cells/test_cells.py", "-k", "luong-coverage"]
    assert " passed" in run("pytest", "-q", "-p", "no:cacheprovider", *tests)

    data = tiny_runs.corpus(tmp_path / "data", 64)
    settings = {
        "hparams_path": "hparams/tiny/luong_coverage.json", "num_units": 8, "num_train_steps": 4,
        "steps_per_external_eval": 2, "batch_size": 16, "beam_width": 3, "tgt_max_len_infer": 6,
    }  # fmt: skip
    assert "best, test: BLEU" in run(
        "tfmann.nmt", *tiny_runs.path_flags(data, tmp_path / "out", **settings)
    )
    assert (tmp_path / "out" / "best_bleu").is_dir()

"""The image: what it copies is there, is not ignored, and is all that an installation needs."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def copied_files():
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE)
    return [source for line in lines for source in line.split()[:-1]]


def test_the_context_is_what_is_copied(copied_files):
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert sorted(line[1:] for line in lines if line.startswith("!")) == sorted(copied_files)
    assert all((ROOT / source).exists() for source in copied_files)


def test_what_is_copied_makes_the_package(copied_files, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    for name in copied_files:
        target = source / name
        target.parent.mkdir(exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, target)
    script = f"from setuptools import build_meta; build_meta.build_wheel({str(tmp_path)!r})"
    argv = [sys.executable, "-c", script]
    done = subprocess.run(argv, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("tfmann-*.whl"))


def test_the_image_is_that_of_the_lock_and_runs_tfmann_as_an_ordinary_user():
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    installed = [line for line in lines if line.startswith("RUN") and "pip install" in line]
    assert "--require-hashes -r requirements.lock" in installed[0]
    assert all("--no-deps" in line for line in installed[1:])
    assert lines.index("USER tfmann") > max(i for i, line in enumerate(lines) if "RUN" in line)
    assert 'ENTRYPOINT ["tfmann"]' in lines

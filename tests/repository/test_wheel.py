"""The wheel has every file that the program reads."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import pytest
from helpers.bootstrap_machine import ROOT

# Folders of a checkout, and where their files are in the wheel.
FOLDERS = {
    "tfmann/play/static": "tfmann/play/static",
    "tfmann/play/models": "tfmann/play/models",
    "tfmann/report/templates": "tfmann/report/templates",
    "hparams": "tfmann/shipped/hparams",
}


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_of_a_folder_is_there(names: set[str], folder: str):
    tracked = subprocess.run(
        ["git", "ls-files", "--", "."], cwd=ROOT / folder, capture_output=True, text=True
    )
    if tracked.returncode:
        pytest.skip("this is no checkout of git")
    files = [file for file in tracked.stdout.splitlines() if not file.endswith(".md")]
    assert len(files) > 1
    assert not {f"{FOLDERS[folder]}/{file}" for file in files} - names


def test_every_model_of_the_page_can_be_loaded(names: set[str]):
    models = json.loads((ROOT / "tfmann/play/models/models.json").read_text("utf-8"))
    assert len(models) > 10
    for model in models:
        for file in ("hparams.json", "vocab.src", "vocab.tgt", "best_bleu/weights.npz"):
            assert f"tfmann/play/models/{model}/{file}" in names


def test_nothing_else_is_there(names: set[str]):
    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"tfmann"}
    assert not {name for name in names if name.endswith(".pyc")}

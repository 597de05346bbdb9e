"""Shipped files are found in a checkout and in a wheel, by path and by name."""

import json
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from helpers.command_line import fails

from tfmann.errors import UsageError
from tfmann.papers.rendering import TABLES
from tfmann.utils import provenance, resources

ROOT = Path(__file__).resolve().parents[2]


def test_a_checkout_uses_the_folders_at_its_top():
    assert not resources.INSTALLED
    assert resources.shipped("hparams", "tiny") == ROOT / "hparams" / "tiny"
    assert resources.results_dir() == str(ROOT / "results")


def test_every_table_finds_its_settings_and_its_manifest():
    for table in TABLES.values():
        assert table.manifest is None or resources.shipped("data", table.manifest).is_file()
        for scale in table.scales:
            for row in table.at(scale).rows:
                name = table.at(scale).settings_file(row, scale).as_posix()
                assert name in resources.settings_names()


@pytest.mark.parametrize("name", ["tiny/luong.json", "hparams/tiny/luong.json"])
def test_settings_have_short_names(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert resources.settings_path(name) == str(ROOT / "hparams" / "tiny" / "luong.json")


def test_a_file_of_the_users_wins(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("tiny").mkdir()
    Path("tiny", "luong.json").write_text("{}")
    assert resources.settings_path("tiny/luong.json") == "tiny/luong.json"


@pytest.mark.parametrize("name", ["", "tiny", "../hparams/tiny/luong.json", "/tiny/luong.json"])
def test_nothing_else_is_a_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="there is no such file"):
        resources.settings_path(name)


def test_a_misspelled_name_is_answered_with_the_nearest(capsys, tmp_path):
    words = r"cannot read the hparams file tiny/luongg\.json.*did you mean tiny/luong\.json\?"
    fails([f"--out_dir={tmp_path}", "--hparams_path=tiny/luongg.json"], capsys, 2, words)


BUILD = """
import os, sys
from setuptools import build_meta
print(getattr(build_meta, sys.argv[1])(sys.argv[2]))
"""


def build(hook, source, folder):
    """Builds as pip does, and returns what was built."""
    argv = [sys.executable, "-c", BUILD, hook, str(folder)]
    done = subprocess.run(argv, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel that is made from the source distribution of a copy of the checkout."""
    folder = tmp_path_factory.mktemp("package")
    left_out = shutil.ignore_patterns(".*", "*.egg-info", "build", "dist", "runs", "corpora")
    shutil.copytree(ROOT, folder / "checkout", ignore=left_out)
    with tarfile.open(build("build_sdist", folder / "checkout", folder)) as archive:
        archive.extractall(folder / "unpacked")
    (source,) = (folder / "unpacked").iterdir()
    with zipfile.ZipFile(build("build_wheel", source, folder)) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def contents(root, folder):
    """Returns the bytes of a folder's files by path below the root, without notes (.md)."""
    files = [path for path in (root / folder).rglob("*") if path.is_file()]
    return {p.relative_to(root): p.read_bytes() for p in files if p.suffix != ".md"}


def test_a_wheel_has_all_that_comes_with_tfmann(wheel):
    for folder in ("hparams", "data"):
        assert contents(wheel / "tfmann" / "shipped", folder) == contents(ROOT, folder)
    templates = ROOT / "tfmann" / "report" / "templates"
    for path in templates.iterdir():
        assert (wheel / path.relative_to(ROOT)).is_file(), path
    assert (wheel / "tfmann" / "py.typed").is_file()
    (metadata,) = wheel.glob("*.dist-info")
    assert "tfmann = tfmann.cli.main:main" in (metadata / "entry_points.txt").read_text()
    assert "# tfmann" in (metadata / "METADATA").read_text(encoding="utf-8")


def test_a_wheel_finds_it(wheel, tmp_path):
    script = (
        "import json; from tfmann.utils import resources as r;"
        "from tfmann.utils.provenance import _revision;"
        "print(json.dumps([r.__file__, r.settings_path('tiny/luong.json'), r.results_dir(),"
        "str(r.shipped('data', 'tvsub.json')), _revision()]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path, env={"PYTHONPATH": str(wheel), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    module, settings, results, manifest, revision = json.loads(done.stdout)
    assert Path(module).is_relative_to(wheel) and Path(settings).is_relative_to(wheel)
    assert Path(settings).is_file() and Path(manifest).is_file()
    assert (results, revision) == ("results", f"release {provenance.__version__}")


def test_the_revision_of_another_project_is_not_ours(tmp_path, monkeypatch):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    inside = tmp_path / "venv" / "tfmann" / "utils" / "provenance.py"
    monkeypatch.setattr(provenance, "__file__", str(inside))
    inside.parent.mkdir(parents=True)
    assert provenance._revision() == f"release {provenance.__version__}"

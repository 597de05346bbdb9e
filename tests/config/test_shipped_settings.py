"""The files of hparams/: short, each with a base, and all of them in the index."""

import itertools
import json
import re
from pathlib import Path

import pytest

from tfmann import config

FOLDER = Path(__file__).resolve().parents[2] / "hparams"
ALL = sorted(FOLDER.rglob("*.json"))
FILES = [path for path in ALL if path.name != "base.json"]


def name_of(path):
    return path.relative_to(FOLDER).as_posix()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_says_only_what_differs_from_its_base(path):
    values = json.loads(path.read_text(encoding="utf-8"))
    assert list(values)[:2] == ["base", "cell"]
    base = config.read_json(path.with_name(values.pop("base")))
    del values["cell"]
    inherited = {key: base.get(key, config.FIELDS[key].default) for key in values}
    assert not [key for key, value in values.items() if value == inherited[key]]


@pytest.mark.parametrize("base", sorted(set(ALL) - set(FILES)), ids=name_of)
def test_a_base_says_what_holds_for_some_of_its_files(base):
    files = [path for path in base.parent.glob("*.json") if path != base]
    for key, value in config.read_json(base).items():
        assert any(config.read_json(path)[key] == value for path in files), key


def test_no_two_files_of_a_directory_are_the_same():
    for _, paths in itertools.groupby(FILES, key=lambda path: path.parent):
        texts = [path.read_text(encoding="utf-8") for path in paths]
        assert len(set(texts)) == len(texts)


def list_files():
    """Returns the files that the index lists; `{a,b}_c.json` means two of them."""
    folder = None
    for line in (FOLDER / "README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            folder = line[3:]
        elif line.startswith("- `"):
            name = line.split("`")[1]
            group = re.fullmatch(r"\{(.*)\}(.*)", name)
            for start in group[1].split(",") if group else [""]:
                yield f"{folder}/{start}{group[2] if group else name}"


def test_the_index_lists_every_file_once():
    assert sorted(list_files()) == sorted(map(name_of, FILES))

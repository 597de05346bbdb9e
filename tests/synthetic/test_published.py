"""The synthetic corpus of a table: written once, and not another version's."""

import shutil

import pytest

from tfmann.errors import UserError
from tfmann.papers import table_corpus
from tfmann.papers.tables import TABLES
from tfmann.synthetic import Style, write_corpus

SIZES = {"train": 900, "dev": 20, "test": 20}
SENSES = TABLES["synthetic-senses"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table's folder whose corpus is written."""
    monkeypatch.setattr(table_corpus, "SYNTHETIC_DOCUMENT_PAIRS", SIZES)
    table_corpus.find_corpus(SENSES, "tiny", None, str(tmp_path))
    return tmp_path


def test_a_corpus_is_written_once(folder):
    train = folder / "corpus" / "train.src"
    before = train.stat().st_mtime_ns
    found = table_corpus.find_corpus(SENSES, "tiny", None, str(folder))
    assert train.stat().st_mtime_ns == before
    assert found.report.splits["train"].pairs == 900


@pytest.mark.parametrize("side", ["src", "tgt"])
def test_a_corpus_of_another_version_is_refused(folder, side):
    path = folder / "corpus" / f"train.{side}"
    lines = path.read_text("utf-8").splitlines()
    expected, lines[6] = lines[6], f"Once {lines[6]}"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    with pytest.raises(UserError) as error:
        table_corpus.find_corpus(SENSES, "tiny", None, str(folder))
    message = str(error.value)
    assert f"{path}: line 7 is not what this version of tfmann writes" in message
    assert f"expected: {expected}\n" in message
    assert "choose another --out_dir" in message and "--corpus_dir" in message
    assert path.read_text("utf-8").splitlines() == lines  # nothing is written over


def test_a_corpus_of_another_style_is_refused(folder):
    shutil.rmtree(folder / "corpus")
    write_corpus(folder / "corpus", seed=1, style=Style(document_tense=True), **SIZES)
    with pytest.raises(UserError, match=r"train.src: line \d+ is not what"):
        table_corpus.find_corpus(SENSES, "tiny", None, str(folder))


def test_a_corpus_of_another_seed_can_be_given(tmp_path, monkeypatch):
    monkeypatch.setattr(table_corpus, "SYNTHETIC_DOCUMENT_PAIRS", SIZES)
    write_corpus(tmp_path / "mine", seed=9, style=SENSES.style, **SIZES)
    given = table_corpus.find_corpus(SENSES, "tiny", str(tmp_path / "mine"), str(tmp_path))
    assert given.report.splits["train"].pairs == 900

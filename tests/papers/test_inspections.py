"""The statistics that a run's record gets: over its own translations of all tests, once."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.command_line import WORDS, write_model

from tfmann.cli import inspection
from tfmann.errors import UserError
from tfmann.papers import inspections, memory_statistics


def fake_corpus(folder, *tests):
    """A corpus of `test` and further tests, a sentence each from a place of its own in WORDS."""
    sources = {}
    for number, name in enumerate(("test", *tests)):
        path = folder / f"{name}.src"
        pairs = list(zip(WORDS, WORDS[1:]))[number:]
        path.write_text("".join(f"{a} {b}\n" for a, b in pairs), "utf-8")
        sources[f"output_{name}"] = str(path)
    return SimpleNamespace(test_sources=lambda: sources)


def test_a_run_is_measured_over_its_own_translations_once(untraced, tmp_path, monkeypatch):
    def run_here(command):
        """In this process, which has loaded TensorFlow."""
        assert command[1:3] == ["-m", "tfmann.cli.inspection"]
        return inspection.main(command[3:])

    monkeypatch.setattr(inspections, "run_to_end", run_here)
    folder = tmp_path / "run"
    folder.mkdir()
    write_model(folder)
    corpus = fake_corpus(tmp_path)
    (folder / "output_test").write_text("".join(f"{word.upper()}\n" for word in WORDS[1:]), "utf-8")
    measured = inspections.measure(corpus, str(folder), "luong")
    assert memory_statistics.extent({"inspection": measured}) == (len(WORDS) - 1, len(WORDS) - 1)
    assert measured["forced"] == "translations" and measured["revision"]
    assert not {"hardware", "versions", "date"} & set(measured)
    (folder / "best_bleu").rename(tmp_path / "elsewhere")  # what is in the folder is enough
    assert inspections.measure(corpus, str(folder), "luong") == measured
    assert json.dumps(measured)


def test_documents_are_given_to_cells_that_read_them(tmp_path, monkeypatch):
    commands = []

    def run_to_end(command):
        commands.append(command)
        return 0

    monkeypatch.setattr(inspections, "run_to_end", run_to_end)
    monkeypatch.setattr(inspections, "has_best", lambda folder: True)
    for cell in ("cache", "luong"):
        with pytest.raises(FileNotFoundError):  # nothing is written
            inspections.measure(fake_corpus(tmp_path), str(tmp_path), cell)
    with_documents, without = commands
    assert f"--documents={tmp_path / 'test'}.docs" in with_documents
    assert set(with_documents) - set(without) == {f"--documents={tmp_path / 'test'}.docs"}
    assert not any(flag.startswith("--sentences") for flag in without)  # the whole test set
    assert f"--input={tmp_path / 'test.src'}" in without


def test_the_sentences_of_several_tests_are_pooled(tmp_path, monkeypatch):
    """Their files are joined, and documents of two tests stay apart even with the same number."""
    corpus = fake_corpus(tmp_path, "b")
    run = tmp_path / "run"
    run.mkdir()
    for name, documents in (("test", (0, 0, 4)), ("b", (0, 1))):
        (run / f"output_{name}").write_text(f"{name} said\n", "utf-8")
        (tmp_path / f"{name}.docs").write_text("".join(f"{n}\n" for n in documents), "utf-8")

    def read(command):
        flags = dict(argument[2:].split("=", 1) for argument in command[3:])
        texts = {name: Path(flags[name]).read_text("utf-8").splitlines()
                 for name in ("input", "translations", "documents")}  # fmt: skip
        output = {"texts": texts, "revision": "r", "statistics": []}
        Path(flags["output"]).write_text(json.dumps(output), "utf-8")
        return 0

    monkeypatch.setattr(inspections, "run_to_end", read)
    monkeypatch.setattr(inspections, "has_best", lambda folder: True)
    (run / "inspection.json").write_text('{"revision": "of the first test alone"}', "utf-8")
    measured = inspections.measure(corpus, str(run), "cache")
    sources = [f"{a} {b}" for a, b in zip(WORDS, WORDS[1:])]
    assert measured["texts"] == {
        "input": sources + sources[1:], "translations": ["test said", "b said"],
        "documents": ["0", "0", "4", "5", "6"],
    }  # fmt: skip
    assert measured["tests"] == 2 and measured["revision"] == "r"


def test_a_run_without_weights_is_left_out(tmp_path, capsys):
    (tmp_path / "best_bleu").mkdir()
    (tmp_path / "best_bleu" / "state.json").write_text("{}")  # the rest was removed
    assert inspections.measure(fake_corpus(tmp_path), str(tmp_path), "luong") is None
    assert "has no weights any more" in capsys.readouterr().out


def test_a_model_that_cannot_be_measured_is_named(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    write_model(folder)  # without translations
    with pytest.raises(UserError, match="model in .*run could not be measured"):
        inspections.measure(fake_corpus(tmp_path), str(folder), "luong")


def test_files_of_several_tests_are_joined(tmp_path):
    for name in "abcd":
        (tmp_path / name).write_text(f"{name}\n", "utf-8")
    paths = {name: str(tmp_path / name) for name in "abcd"}
    one = {"input": [paths["a"]], "reference": [paths["b"]]}
    assert inspections.join_files(one, tmp_path) == {"input": paths["a"], "reference": paths["b"]}
    two = {"input": [paths["a"], paths["c"]], "reference": [paths["b"], paths["d"]]}
    joined = inspections.join_files(two, tmp_path)
    assert [Path(path).read_text("utf-8") for path in joined.values()] == ["a\nc\n", "b\nd\n"]

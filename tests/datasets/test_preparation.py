"""Raw corpora made ready: tokens and a BPE, once, again where something changed."""

import dataclasses
import json

import pytest
from helpers.corpus_server import manifest_of, record

from tfmann.data.subword import BpeSegmenter
from tfmann.datasets import preparation as module
from tfmann.datasets.catalog import use_local
from tfmann.datasets.preparation import prepare
from tfmann.errors import UserError

SOURCE = ["Şi „casa” mea, țara mea.", "Casa mea; ţara mea!"] * 6
TARGET = ["And “the house”, my land.", "My house; my land!"] * 6


@pytest.fixture
def corpus(tmp_path):
    """A maker of the report on a raw Romanian-English corpus, of which a file can be changed."""
    folder = tmp_path / "raw"
    folder.mkdir()
    content = record()
    content.update(source="ro", target="en", files=[])
    for split in ("train", "dev", "test"):
        for side in ("ro", "en"):
            entry = {"path": f"{split}.{side}", "urls": ["http://127.0.0.1:9/"], "bytes": 1}
            content["files"].append(entry)
    manifest = manifest_of(tmp_path, content)

    def make(**changed):
        for split in ("train", "dev", "test"):
            for side, lines in (("ro", SOURCE), ("en", TARGET)):
                lines = changed.get(f"{split}_{side}", lines)
                text = "".join(f"{line}\n" for line in lines)
                (folder / f"{split}.{side}").write_text(text, encoding="utf-8")
        return use_local(manifest, folder)

    return make


def run(report, tmp_path, merges=20):
    log = []
    prepared = prepare(report, str(tmp_path / "deep" / "ready"), merges, log.append)
    return prepared, log


def test_tokens_and_merges_are_what_training_takes(corpus, tmp_path):
    prepared, log = run(corpus(), tmp_path)
    ready = tmp_path / "deep" / "ready"
    assert (ready / "train.ro").read_text().splitlines() == [
        'Si " casa " mea , tara mea .', "Casa mea ; tara mea !"
    ] * 6  # fmt: skip
    assert (ready / "dev.en").read_text().splitlines()[0] == 'And " the house " , my land .'
    assert prepared.settings == {
        "src": "ro", "tgt": "en", "train_prefix": str(ready / "train"),
        "dev_prefix": str(ready / "dev"), "test_prefix": str(ready / "test"),
        "subword_model": str(ready / "bpe.codes"),
    }  # fmt: skip
    assert any("20 merges" in line for line in log)
    # one BPE for both sides: a word of either is learned
    segmenter = BpeSegmenter(prepared.settings["subword_model"])
    assert segmenter.segment("tara land") == ["tara", "land"]
    assert len(segmenter.segment("plankton")) > 1


def test_document_ids_are_copied(corpus, tmp_path):
    report = corpus()
    files = [*report.manifest.files, dataclasses.replace(report.manifest.files[0], path="dev.docs")]
    manifest = dataclasses.replace(report.manifest, files=tuple(files))
    ids = "".join(f"{number // 3}\n" for number in range(len(SOURCE)))
    (tmp_path / "raw" / "dev.docs").write_text(ids)
    run(use_local(manifest, report.directory), tmp_path)
    ready = tmp_path / "deep" / "ready"
    assert (ready / "dev.docs").read_text() == ids and not (ready / "train.docs").exists()
    (ready / "dev.docs").unlink()
    run(use_local(manifest, report.directory), tmp_path)
    assert (ready / "dev.docs").read_text() == ids
    run(report, tmp_path)  # text without them
    assert not (ready / "dev.docs").exists()


def test_what_is_done_is_not_done_again(corpus, tmp_path, monkeypatch):
    first, _ = run(corpus(), tmp_path)
    assert first.record["num_merges"] == 20 and 0 < first.record["merges"] <= 20
    assert len(first.record["inputs"]) == 6
    second, log = run(corpus(), tmp_path)
    assert second == first and log == []
    json.dumps(second.record)


@pytest.mark.parametrize("name", ["bpe.codes", "train.ro", "test.en"])
def test_a_changed_preparation_is_repeated(corpus, tmp_path, name):
    first, _ = run(corpus(), tmp_path)
    path = tmp_path / "deep" / "ready" / name
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    second, log = run(corpus(), tmp_path)
    assert log[0] == f"{path} has changed since it was written: preparing everything again"
    assert path.read_bytes() == content and second == first
    assert run(corpus(), tmp_path) == (first, [])


@pytest.mark.parametrize("change", ["merges", "input", "rules", "lost", "record"])
def test_what_changed_is_done_again(corpus, tmp_path, monkeypatch, change):
    first, _ = run(corpus(), tmp_path)
    ready = tmp_path / "deep" / "ready"
    report, merges = corpus(), 20
    if change == "merges":
        merges = 5
    elif change == "input":
        report = corpus(dev_en=["Changed."] * 12)
    elif change == "rules":
        monkeypatch.setattr(module.tokenization, "RULES", "other")
    elif change == "lost":
        (ready / "test.ro").unlink()
    else:
        (ready / "prepared.json").write_text("[")
    second, log = run(report, tmp_path, merges)
    assert log and (ready / "test.ro").exists()
    assert (second.record == first.record) == (change in ("lost", "record"))
    assert run(report, tmp_path, merges) == (second, [])


def test_an_interrupted_preparation_is_not_taken_for_a_complete_one(corpus, tmp_path, monkeypatch):
    run(corpus(), tmp_path)

    def interrupted(*unused):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(module, "learn_bpe", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(corpus(train_en=["x x x"] * 12), tmp_path)
    _, log = run(corpus(), tmp_path)  # the tokens there are of the other text
    assert log
    assert "house" in (tmp_path / "deep" / "ready" / "train.en").read_text()


def test_a_folder_that_cannot_be_made_is_named(corpus, tmp_path):
    (tmp_path / "deep").write_text("a file")
    with pytest.raises(UserError, match="cannot write in .*ready"):
        run(corpus(), tmp_path)


def test_romanian_keeps_its_diacritics_where_it_is_the_target(corpus, tmp_path):
    content = json.loads((tmp_path / "manifest.json").read_text())
    content.update(source="en", target="ro")
    corpus()
    report = use_local(manifest_of(tmp_path, content), tmp_path / "raw")
    run(report, tmp_path)
    assert "țara" in (tmp_path / "deep" / "ready" / "train.ro").read_text(encoding="utf-8")

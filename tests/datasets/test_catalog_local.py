"""Published corpora: local copies, checked and reported."""

import hashlib

import pytest
from helpers.corpus_server import TEXT, corpus, manifest_of, one_file, record

from tfmann.datasets.catalog import fetch, use_local
from tfmann.errors import UserError


def test_a_local_copy_is_checked_and_reported(tmp_path):
    manifest, folder = corpus(tmp_path, one_file("http://127.0.0.1:9/"), missing=())
    report = use_local(manifest, folder)
    assert report.splits["train"].pairs == 5000 and report.splits["train"].empty_sided == 0
    assert report.matches["train.xx"] is True
    assert report.hparams() == {
        "src": "xx",
        "tgt": "yy",
        "train_prefix": str(folder / "train"),
        "dev_prefix": str(folder / "dev"),
        "test_prefix": str(folder / "test"),
    }
    (folder / "train.xx").write_bytes(TEXT.replace(b"line 7 of an invented file", b" "))
    report = use_local(manifest, folder)
    assert report.matches["train.xx"] is False
    assert report.splits["train"].empty_sided == 1
    assert "5,000 pairs, 1 of them with an empty side" in str(report)
    assert "SHA-256 differs): train.xx" in str(report)


def test_a_known_variant_is_accepted_by_its_count_and_named(tmp_path):
    counts = {"accept_lines": [{"lines": 3, "note": "the short copy"}], "lines": 5000}
    urls = ["http://127.0.0.1:9/"]
    entries = [{"path": f"train.{side}", "urls": urls, **counts} for side in ("xx", "yy")]
    manifest, folder = corpus(tmp_path, *entries, missing=())
    assert use_local(manifest, folder).splits["train"].variant == ""
    for side in ("xx", "yy"):
        (folder / f"train.{side}").write_bytes(b"a\nb\nc\n")
    report = use_local(manifest, folder)
    assert report.splits["train"].pairs == 3
    assert report.splits["train"].variant == "the short copy"
    assert "3 pairs" in str(report) and "the short copy" in str(report)
    for side in ("xx", "yy"):
        (folder / f"train.{side}").write_bytes(b"a\nb\n")
    with pytest.raises(UserError, match=r"train.xx has 2 lines; expected 5,000 or 3"):
        use_local(manifest, folder)


def test_further_references_and_tests_are_counted(tmp_path):
    content = record()
    names = ["test.yy0", "test.yy1", "more.xx", "more.yy0", "more.yy1", "more.yy2"]
    content["files"] = [e for e in content["files"] if e["path"] != "test.yy"]
    entry = {"urls": ["http://127.0.0.1:9/"], "lines": 5000}
    content["files"] += [{"path": name, **entry} for name in names]
    content["more_tests"] = ["more"]
    manifest, folder = manifest_of(tmp_path, content), tmp_path / "corpus"
    folder.mkdir()
    for entry in manifest.files:
        (folder / entry.path).write_bytes(TEXT)
    assert use_local(manifest, folder).splits["test"].pairs == 5000
    for name in ("test.yy1", "more.yy0", "more.yy2"):
        (folder / name).write_bytes(b"one line\n")
        with pytest.raises(UserError, match=rf"{name} has 1 line"):
            use_local(manifest, folder)
        (folder / name).write_bytes(TEXT)


def test_vocabularies_are_part_of_a_corpus(tmp_path):
    content = record()
    content["vocabularies"] = {"prefix": "words/v"}
    for side in ("xx", "yy"):
        entry = {"path": f"words/v.{side}", "urls": ["http://127.0.0.1:9/"], "lines": 2}
        content["files"].append(entry)
    manifest, folder = manifest_of(tmp_path, content), tmp_path / "corpus"
    (folder / "words").mkdir(parents=True)
    for entry in manifest.files:
        (folder / entry.path).write_bytes(b"a\nb\n" if entry.lines == 2 else TEXT)
    report = use_local(manifest, folder)
    assert report.hparams()["vocab_prefix"] == str(folder / "words/v")
    (folder / "words/v.yy").write_bytes(b"a\n")
    with pytest.raises(UserError, match="v.yy has 1 lines; expected 2"):
        use_local(manifest, folder)


def test_a_published_file_is_right_whatever_its_line_count(tmp_path):
    entry = one_file("http://127.0.0.1:9/", sha256=hashlib.sha256(TEXT).hexdigest(), lines=4999)
    manifest, folder = corpus(tmp_path, entry, missing=())
    assert use_local(manifest, folder).splits["train"].pairs == 5000


def test_missing_files_are_named_with_what_is_expected(tmp_path):
    manifest, folder = corpus(tmp_path, missing=("dev.yy", "test.xx"))
    with pytest.raises(UserError, match="lacks dev.yy, test.xx\n.*expected in it: .*train.xx"):
        use_local(manifest, folder)
    with pytest.raises(UserError, match="lacks"):
        use_local(manifest, tmp_path / "absent")


def test_sides_of_different_length_are_refused(tmp_path):
    manifest, folder = corpus(tmp_path, missing=())
    (folder / "dev.xx").write_bytes(TEXT + b"one more\n")
    with pytest.raises(UserError, match="unequal line counts.*5001.*5000|5,001.*5,000"):
        use_local(manifest, folder)


def test_a_variant_is_named_where_the_published_count_is_not_known(tmp_path):
    content = record()
    content["obtain"] = "ask its owners."
    content["files"] = [{"path": entry["path"]} for entry in content["files"]]
    for entry in content["files"]:
        if entry["path"].startswith("train"):
            entry["accept_lines"] = [{"lines": 5000, "note": "a stand-in"}]
    manifest, folder = manifest_of(tmp_path, content), tmp_path / "corpus"
    with pytest.raises(UserError, match="invented cannot be downloaded: ask its owners") as error:
        fetch(manifest, folder)
    assert "train.xx, train.yy" in str(error.value) and "CORPUS_DIR" in str(error.value)
    folder.mkdir()
    for entry in manifest.files:
        (folder / entry.path).write_bytes(TEXT)
    report = use_local(manifest, folder)
    assert report.splits["train"].variant == "a stand-in" and report.splits["dev"].variant == ""
    for side in ("xx", "yy"):
        (folder / f"train.{side}").write_bytes(b"a\n")
    assert use_local(manifest, folder).splits["train"].variant == ""


def in_documents(tmp_path, **of_train):
    """A corpus of documents of 2,000 lines; those of dev are not there."""
    entries = [{"path": f"{split}.docs", "urls": ["http://127.0.0.1:9/"], "lines": 5000}
               for split in ("train", "dev", "test")]  # fmt: skip
    entries[0].update(of_train)
    manifest, folder = corpus(tmp_path, *entries, missing=("dev.docs",))
    ids = "".join(f"{i // 2000}\n" for i in range(5000))
    for split in ("train", "test"):
        (folder / f"{split}.docs").write_text(ids)
    return manifest, folder


def test_documents_are_counted_and_may_be_missing(tmp_path):
    manifest, folder = in_documents(tmp_path)
    report = use_local(manifest, folder)
    counts = {name: split.documents for name, split in report.splits.items()}
    assert counts == {"train": 3, "dev": None, "test": 3}
    assert "0 of them with an empty side; 3 documents" in str(report)
    assert "dev.docs" not in report.matches and "train.docs" in report.matches
    (folder / "train.xx").unlink()
    with pytest.raises(UserError, match=r"lacks train.xx\n.*\(.docs only for systems that look"):
        use_local(manifest, folder)


@pytest.mark.parametrize(("line", "words"), [
    ("", "unequal line counts.*4,999"), ("x\n", "line 5000: expected the document's id"),
])  # fmt: skip
def test_documents_must_fit_the_lines(line, words, tmp_path):
    manifest, folder = in_documents(tmp_path)
    (folder / "test.docs").write_text("0\n" * 4999 + line)
    with pytest.raises(UserError, match=words):
        use_local(manifest, folder)


def test_documents_of_another_variant_are_named_or_refused(tmp_path):
    variant = {"accept_lines": [{"lines": 5000, "note": "a part"}]}
    manifest, folder = in_documents(tmp_path, **{**variant, "lines": 7000})
    use_local(manifest, folder)
    (tmp_path / "second").mkdir()
    manifest, folder = in_documents(tmp_path / "second", lines=7000)
    with pytest.raises(UserError, match="train.docs has 5,000 lines; expected 7,000"):
        use_local(manifest, folder)

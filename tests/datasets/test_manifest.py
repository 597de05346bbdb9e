"""Manifests: the shipped ones are sound, and every mistake is named by its key."""

from pathlib import Path

import pytest
from helpers.corpus_server import manifest_of, record

from tfmann.datasets.manifest import load_manifest
from tfmann.errors import UsageError

DATA = Path(__file__).parents[2] / "data"


@pytest.mark.parametrize("name", ["iwslt15_vi_en", "multi30k_de_en"])
def test_the_shipped_manifests_are_sound(name):
    manifest = load_manifest(DATA / f"{name}.json")
    assert manifest.name == name
    for entry in manifest.files:
        assert all(url.startswith("https://") for url in entry.urls) and len(entry.urls) > 1
        assert entry.lines


def test_the_dialogues_come_out_of_files_that_are_known_by_their_bytes():
    manifest = load_manifest(DATA / "bcontrast_de_en.json")
    assert manifest.name == "bcontrast_de_en" and "CC BY-SA" in manifest.licence
    assert all(archive.sha256 and archive.bytes for archive in manifest.archives)
    for entry in manifest.files:
        (part,) = entry.members
        split, suffix = entry.path.split(".")
        assert (part.archive, part.member) == (f"archives/{split}.json", suffix)
        assert entry.sha256 and entry.lines
    assert all(manifest.documents(split) for split in manifest.splits)


def test_wmt16_comes_out_of_archives_that_are_known_by_their_bytes():
    manifest = load_manifest(DATA / "wmt16_ro_en.json")
    assert manifest.name == "wmt16_ro_en" and (manifest.source, manifest.target) == ("ro", "en")
    for archive in manifest.archives:
        assert archive.sha256 and archive.bytes
        assert all(url.startswith("https://") for url in archive.urls) and len(archive.urls) > 1
    counts = {entry.path: entry.lines for entry in manifest.files}
    assert sorted(counts.values()) == [1_999] * 4 + [399_375] * 2
    for entry in manifest.files:
        (member,) = entry.members
        assert manifest.archive_of(member).path == member.archive
        side = entry.path[-2:]
        assert member.member.endswith(f".{side}") or f".{side}.sgm" in member.member
        assert {variant.lines for variant in entry.accept_lines} <= {610_320, 22_764, 57_764}


def test_wmt17_is_joined_out_of_archives_that_are_known_by_their_bytes():
    manifest = load_manifest(DATA / "wmt17_de_en.json")
    for archive in manifest.archives:
        assert archive.sha256 and archive.bytes
        assert all(url.startswith("https://") for url in archive.urls) and len(archive.urls) > 1
    entries = {entry.path: entry for entry in manifest.files}
    for side in ("de", "en"):
        members = entries[f"train.{side}"].members
        assert len(members) == 4 and all(part.member.endswith(f".de-en.{side}") for part in members)
    german, english = (
        [part.archive for part in entries[f"train.{x}"].members] for x in ("de", "en")
    )
    assert german == english
    assert [entries[f"newstest{year}.de-en.en"].lines for year in (2016, 2017)] == [2_999, 3_004]


@pytest.mark.parametrize("name", [
    "nist_zh_en", "tsinghua_zh_en", "hansards_en_fr", "iwslt07_en_ja", "ntcir10_en_ja",
    "aspec_en_ja", "tvsub", "ted_zh_en", "nist_documents_zh_en",
])  # fmt: skip
def test_what_nobody_can_download_says_how_to_come_by_it(name):
    manifest = load_manifest(DATA / f"{name}.json")
    assert manifest.name == name and manifest.obtain
    assert not [entry for entry in manifest.files if entry.urls or entry.members]


def test_nist_has_four_references_and_four_test_sets():
    manifest = load_manifest(DATA / "nist_zh_en.json")
    tests = [manifest.splits["test"], *manifest.more_tests]
    assert tests == ["mt03", "mt04", "mt05", "mt06"]
    paths = {entry.path for entry in manifest.files}
    assert manifest.sides("mt03") == ("mt03.zh", "mt03.en0")
    for test in [*tests, "mt02"]:
        assert {f"{test}.en{i}" for i in range(4)} <= paths
    assert manifest.sides("train") == ("train.zh", "train.en")


def test_the_corpora_of_tu_have_documents_in_every_split():
    for name, references in (("tvsub", 3), ("ted_zh_en", 1), ("nist_documents_zh_en", 4)):
        manifest = load_manifest(DATA / f"{name}.json")
        paths = {entry.path for entry in manifest.files}
        for prefix in manifest.splits.values():
            assert manifest.documents(prefix) == f"{prefix}.docs"
            assert manifest.may_lack(f"{prefix}.docs") and not manifest.may_lack(f"{prefix}.zh")
        test = manifest.splits["test"]
        suffixes = [""] if references == 1 else range(references)
        assert {f"{test}.en{suffix}" for suffix in suffixes} <= paths
        assert len(paths) == 3 + 3 + 2 + references + (3 if "nist" in name else 0)
    assert load_manifest(DATA / "iwslt15_vi_en.json").documents("train") is None


def test_tvsub_is_known_by_its_lines_and_part_of_it_is_named():
    counts = {"train": 2_150_945, "dev": 1_086, "test": 1_154}
    for entry in load_manifest(DATA / "tvsub.json").files:
        split = entry.path.split(".")[0]
        assert entry.lines == counts[split]
        parts = [99_457, 474_712] if split == "train" else []
        assert [variant.lines for variant in entry.accept_lines] == parts
        assert (entry.sha256 is None) == (split == "train")


def test_aligned_sets_have_gold_links_of_the_test():
    sets = ("tsinghua_zh_en", "tsinghua", 900), ("hansards_en_fr", "test", 447)
    for name, prefix, lines in sets:
        manifest = load_manifest(DATA / f"{name}.json")
        assert manifest.splits["test"] == prefix and manifest.alignments == f"{prefix}.align"
        of_the_set = [entry for entry in manifest.files if entry.path.startswith(f"{prefix}.")]
        assert [entry.lines for entry in of_the_set] == [lines] * 3


def test_iwslt15_accepts_the_published_and_the_cleaned_training_text():
    manifest = load_manifest(DATA / "iwslt15_vi_en.json")
    train = [entry for entry in manifest.files if entry.path.startswith("train.")]
    assert len(train) == 2
    for entry in train:
        assert entry.lines == 133_317
        assert [variant.lines for variant in entry.accept_lines] == [133_166]


def change_record(**changes):
    content = record()
    content.update(changes)
    return content


def file_with(**changes):
    entry = {"path": "train.xx", "urls": ["https://h/f"], "lines": 1}
    entry.update(changes)
    return record(entry)


@pytest.mark.parametrize(
    "content, words",
    [
        ("[]", "expected an object, got list"),
        ("{", "not JSON"),
        ('{"name": "a", "name": "b"}', "'name' is listed twice"),
        ("[" * 100_000, "not JSON"),
        (change_record(licens="x"), "unknown key 'licens'; did you mean 'licence'"),
        (change_record(name=None), "the key 'name' is missing"),
        (change_record(name=3), "name: expected str, got int"),
        (change_record(files={}), "files: expected list, got dict"),
        (change_record(files=[1]), r"files\[0\]: expected an object, got int"),
        (change_record(files=[]), "'train.xx' is missing"),
        (change_record(target="xx"), "both 'xx'"),
        (change_record(splits={"train": {"prefix": "train"}}), "'splits.dev' is missing"),
        (change_record(splits={"tran": {}}), "'splits.tran'; did you mean 'train'"),
        (change_record(vocabularies={"prefix": "vocab"}), "'vocab.xx' is missing"),
        (change_record(vocabularies="vocab"), "vocabularies: expected dict, got str"),
        (file_with(sha265="0" * 64), r"'files\[0\].sha265'; did you mean 'sha256'"),
        (file_with(sha256="ABC"), "64 hexadecimal digits"),
        (file_with(lines=None), "one is needed to check the file by"),
        (file_with(lines=-1), "expected a count"),
        (file_with(lines=True), "expected int, got bool"),
        (file_with(lines="7"), "expected int, got str"),
        (file_with(urls=[]), "one or more addresses"),
        (file_with(urls=["file:///etc/passwd"]), "one or more addresses"),
        (file_with(urls=[3]), "one or more addresses"),
        (file_with(accept_lines=[3]), r"accept_lines\[0\]: expected an object"),
        (file_with(accept_lines=[{"lines": 3}]), r"accept_lines\[0\].note' is missing"),
        (change_record(obtain="ask"), "neither urls nor an archive with 'obtain'"),
        (change_record(more_tests=["other"]), "'other.xx' is missing"),
        (change_record(alignments="dev.align"), "'dev.align' is missing"),
        (change_record(alignments={"test": "x"}), "alignments: expected str, got dict"),
        (change_record(more_tests="other"), "more_tests: expected list, got str"),
        (file_with(path="../train.xx"), "plain path"),
        (file_with(path="/train.xx"), "plain path"),
        (file_with(path="a/../train.xx"), "plain path"),
        (file_with(path="a\\train.xx"), "plain path"),
    ],
)
def test_a_wrong_manifest_is_refused_by_key(tmp_path, content, words):
    with pytest.raises(UsageError, match=words) as error:
        manifest_of(tmp_path, content)
    assert "manifest.json" in str(error.value)


def test_a_file_listed_twice_is_refused(tmp_path):
    content = record()
    content["files"].append(content["files"][0])
    with pytest.raises(UsageError, match="is listed twice"):
        manifest_of(tmp_path, content)


def test_a_missing_manifest_is_named(tmp_path):
    with pytest.raises(UsageError, match="absent.json"):
        load_manifest(tmp_path / "absent.json")

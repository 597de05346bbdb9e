"""Translation memories from files and from folders, and what is refused."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
from helpers import translations

from tfmann.config import HParams
from tfmann.data import datastore_folder, memory_files, text_files, translation_memory
from tfmann.data.datastore_record import read_record
from tfmann.data.text_encoder import LanguagePair
from tfmann.errors import UsageError, UserError
from tfmann.utils.checksummed_json import add_checksum
from tfmann.utils.files import file_digest

PAIRS = [("a3 a9 a14", "b5 b6"), ("", "b3"), ("a4 nowhere", "b7"), ("a5", ""), ("a3 a9", "b8")]


@pytest.fixture
def files(tmp_path):
    names = [str(tmp_path / name) for name in ("tm.src", "tm.tgt")]
    for side, name in enumerate(names):
        text_files.write_lines(name, [pair[side] for pair in PAIRS])
    return names


def write_folder(folder, files, **changes):
    """A datastore without keys, as `tfmann datastore` writes it."""
    languages = translations.languages()
    memory = translation_memory.read(*files, languages)
    origin = {
        "text": languages.fingerprints,
        "files": {path: file_digest(path) for path in files},
        "left_out": memory.left_out,
    }
    with datastore_folder.new_folder(str(folder)) as path:
        datastore_folder.save(path, translation_memory.arrays_of(memory), {**origin, **changes})
    return str(folder)


def test_a_disk_without_room_for_an_array_is_an_error(tmp_path, monkeypatch):
    """A write into the mapped file would end in a bus error."""

    def no_room(handle, begin, size):
        assert (begin, size) == (0, os.fstat(handle).st_size) and size > 4 * 1000 * 8
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", no_room)
    with (
        pytest.raises(UserError, match="cannot write the datastore .*: No space left"),
        datastore_folder.new_folder(str(tmp_path / "tm")) as folder,
    ):
        datastore_folder.new_array(folder, "keys", "float32", (1000, 8))
    assert list(tmp_path.iterdir()) == []


def settings(name):
    return HParams(translation_memory=name)


def test_pairs_are_read_without_those_that_have_an_empty_side(files):
    languages = translations.languages()
    memory = translation_memory.load(",".join(files), languages)
    assert memory.sources.size == memory.targets.size == 3 and memory.left_out == 2
    source, target = languages
    assert memory.pair(1) == (source.encode("a4 nowhere"), target.encode("b7"))
    assert memory.retrieve(source.encode("a3 a9"), 2) == [2, 0]
    assert memory.retrieve([], 2) == []


def test_files_in_the_wrong_order_are_refused(files):
    languages = translations.languages()
    source, target = files
    message = f"seem to be in the wrong order; expected SOURCE,TARGET, such as {source},{target}"
    with pytest.raises(UserError, match=message):
        translation_memory.read(target, source, languages)


def test_a_folder_is_read_as_its_files_are(files, tmp_path):
    languages = translations.languages()
    folder = write_folder(tmp_path / "tm", files)
    read, mapped = (translation_memory.load(name, languages) for name in (",".join(files), folder))
    assert isinstance(mapped.sources.ids, np.memmap)
    expected = translation_memory.arrays_of(read)
    for name, array in translation_memory.arrays_of(mapped).items():
        np.testing.assert_array_equal(array, expected[name])
    assert mapped.left_out == 2
    assert mapped.retrieve(languages.source.encode("a3 a9"), 2) == [2, 0]


def test_the_files_of_a_memory_are_named(files, tmp_path):
    assert memory_files.paths(settings(None)) == []
    assert memory_files.paths(settings(",".join(files))) == files
    folder = write_folder(tmp_path / "tm", files)
    assert memory_files.paths(settings(folder)) == [f"{folder}/datastore.json"]
    for name in (None, "", ",".join(files), folder):
        memory_files.require(settings(name))


@pytest.mark.parametrize("name", ["tm.src", "tm.src,", ",", "a,b,c", "absent-folder"])
def test_a_setting_names_two_files_or_a_folder(name):
    with pytest.raises(UsageError, match="expected two files with a comma between them, SOURCE,TA"):
        memory_files.require(settings(name))


@pytest.mark.parametrize(
    "source, target, message",
    [
        (["a3", "a4"], ["b3"], "unequal line counts: .*tm.src has 2, .*tm.tgt has 1 lines"),
        ([], [], "tm.src and .*tm.tgt are empty"),
        (["a3", ""], ["", "b3"], "tm.src and .*tm.tgt: every pair has an empty side"),
        (["b3 b4"], ["b3"], "tm.src: no token of it is in the model's source vocabulary"),
        (["a3 a4"], ["a3 a4"], "tm.tgt: no token of it is in the model's target vocabulary"),
    ],
)
def test_files_that_are_no_memory_are_refused(source, target, message, files):
    for name, lines in zip(files, (source, target)):
        text_files.write_lines(name, lines)
    with pytest.raises(UserError, match=message):
        translation_memory.load(",".join(files), translations.languages())


def test_a_missing_file_is_named(files, tmp_path):
    for check in (
        lambda name: memory_files.require(settings(name)),
        lambda name: translation_memory.load(name, translations.languages()),
    ):
        with pytest.raises(UserError, match="no such file: .*absent"):
            check(f"{files[0]},{tmp_path / 'absent'}")


def test_a_pipe_is_no_memory(files, tmp_path):
    """A pipe is read once: the check of its lines would leave nothing for the memory."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="pipe is a pipe, and a memory is read more than once"):
        memory_files.require(settings(f"{files[0]},{tmp_path / 'pipe'}"))


@pytest.mark.parametrize("blank", ["\u00a0", "\u3000 "])
def test_a_side_of_white_space_is_empty_as_a_line_of_it_is(files, blank):
    for side, name in enumerate(files):
        text_files.write_lines(name, [pair[side] for pair in PAIRS] + [(blank, "b3")[side]])
    assert translation_memory.read(*files, translations.languages()).left_out == 3


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(UserError, match="is no datastore: there is no datastore.json in it"):
        memory_files.require(settings(str(tmp_path)))
    (tmp_path / "letter.txt").write_text("dear reader")
    with pytest.raises(UserError, match="holds other files than a datastore"):
        datastore_folder.require_usable(str(tmp_path))


def test_a_users_files_beside_a_datastore_are_not_lost(files, tmp_path):
    folder = Path(write_folder(tmp_path / "tm", files))
    datastore_folder.require_usable(str(folder))  # a datastore alone is replaced
    (folder / "adapt.json").write_text("{}")
    with pytest.raises(UserError, match=r"\(adapt.json\), which would be lost: give another"):
        datastore_folder.require_usable(str(folder))
    (folder / "adapt.json").unlink()
    (folder / "embeddings.npy").write_text("mine")
    (folder / "keys.npy").mkdir()
    with pytest.raises(UserError, match=r"\(embeddings.npy, keys.npy\), which would be lost"):
        datastore_folder.require_usable(str(folder))
    (folder / "embeddings.npy").unlink()
    (folder / "keys.npy").rmdir()
    (folder / "datastore.json").unlink()
    with pytest.raises(UserError, match="arrays without their record"):
        datastore_folder.require_usable(str(folder))


def test_a_folder_of_the_user_with_a_name_like_the_datastores_is_not_lost(files, tmp_path):
    before = Path(write_folder(tmp_path / "tm", files))
    before.rename(tmp_path / "tm.old")  # the user keeps it
    for _ in range(2):  # there is none yet; then one is replaced
        write_folder(tmp_path / "tm", files)
        assert read_record(str(tmp_path / "tm.old")) == read_record(str(tmp_path / "tm"))
        names = {path.name for path in tmp_path.iterdir() if path.is_dir()}
        assert names == {"tm", "tm.old"}


def test_a_folder_of_other_vocabularies_is_refused(files, tmp_path):
    folder = write_folder(tmp_path / "tm", files)
    source, target = translations.languages()
    with pytest.raises(UserError, match="has the ids of another model's vocabularies"):
        translation_memory.load(folder, LanguagePair(target, source))


def test_a_folder_of_files_that_have_changed_is_refused(files, tmp_path):
    folder = write_folder(tmp_path / "tm", files)
    text_files.write_lines(files[1], ["b3"] * len(PAIRS))
    with pytest.raises(UserError, match="tm.tgt has changed since the datastore .* was made of it"):
        memory_files.require(settings(folder))
    (tmp_path / "tm.tgt").unlink()  # nothing to compare with
    assert read_record(folder)["left_out"] == 2


def test_a_damaged_folder_is_refused(files, tmp_path):
    folder = write_folder(tmp_path / "tm", files)
    load = lambda: translation_memory.load(folder, translations.languages())  # noqa: E731
    np.save(tmp_path / "tm" / "target_ids.npy", np.zeros([2], np.int32))
    with pytest.raises(UserError, match=r"target_ids.npy is damaged: expected int32 \[4\], got"):
        load()
    array = tmp_path / "tm" / "target_ids.npy"
    whole = array.read_bytes()
    for content in (b"\x93NUM", whole[:-1], whole.replace(b"}", b" ", 1)):
        array.write_bytes(content)
        with pytest.raises(UserError, match="cannot read .*target_ids.npy"):
            load()
    record = tmp_path / "tm" / "datastore.json"
    record.write_text(record.read_text().replace('"left_out": 2', '"left_out": 1'))
    with pytest.raises(UserError, match="datastore.json is damaged: make the datastore again"):
        load()
    record.write_text(json.dumps(add_checksum({"tfmann_datastore": 9})))
    with pytest.raises(UserError, match="is a datastore of version 9, and this tfmann reads"):
        load()


def test_a_datastore_replaces_an_earlier_one(files, tmp_path):
    folder = write_folder(tmp_path / "tm", files)
    text_files.write_lines(files[0], ["a3"] * len(PAIRS))
    assert write_folder(tmp_path / "tm", files) == folder
    assert translation_memory.load(folder, translations.languages()).sources.size == 4

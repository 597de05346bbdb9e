"""Text to ids on disk and back: what the arrays hold, and when an earlier run's are taken."""

import hashlib
import json
import os
import random
import shutil

import numpy as np
import pytest

from tfmann.data import corpus_paths, text_files
from tfmann.data import encoded_corpus as encode_module
from tfmann.data.encoded_corpus import encode
from tfmann.data.subword import BpeSegmenter, WordSegmenter
from tfmann.data.subword_learning import learn_bpe
from tfmann.data.text_encoder import LanguagePair, TextEncoder
from tfmann.data.vocab import Vocabulary
from tfmann.errors import UserError

SOURCE = ["a b c", "", "c\u2028 x  a ", "b"]
TARGET = ["X", "Y Z", "\t", "Z Z unknown <s> </s> X"]


def languages(source=("a", "b", "c"), target=("X", "Y", "Z")):
    return LanguagePair(
        *(TextEncoder(Vocabulary.from_tokens(words), WordSegmenter()) for words in (source, target))
    )


@pytest.fixture
def corpus(tmp_path):
    """Writes a corpus; returns a function that encodes it and returns whether it had to."""
    text_files.write_lines(tmp_path / "t.src", SOURCE)
    text_files.write_lines(tmp_path / "t.tgt", TARGET)

    def run(sides=None, documents=None):
        log = []
        paths = [str(tmp_path / f"t.{side}") for side in ("src", "tgt")]
        folder = str(tmp_path / "encoded")
        arrays = encode(sides or languages(), *paths, documents, folder, log.append)
        assert len(log) <= 1
        return arrays, bool(log)

    run.folder = tmp_path / "encoded"
    run.path = tmp_path / "t.src"
    return run


def test_ids_are_those_of_each_line(corpus):
    encoded, fresh = corpus()
    assert fresh and len(encoded) == 4
    assert [encoded.source(i).tolist() for i in range(4)] == [[3, 4, 5], [], [0, 0, 3], [4]]
    assert [encoded.target(i).tolist() for i in range(4)] == [[3], [4, 5], [], [5, 5, 0, 0, 0, 3]]
    assert encoded.documents.tolist() == [-1] * 4
    assert encoded.source_ids.dtype == encoded.target_ids.dtype == np.int32


def test_many_random_lines_come_back(corpus, monkeypatch):
    """Ids are written in several pieces, and the pieces fit together."""
    monkeypatch.setattr(encode_module, "_BUFFERED_IDS", 50)
    draw = random.Random(3)
    sides = languages([f"w{i}" for i in range(40)], [f"v{i}" for i in range(40)])
    lines = [
        [" ".join(f"{letter}{draw.randrange(40)}" for _ in range(draw.randrange(9)))
         for _ in range(300)]
        for letter in "wv"
    ]  # fmt: skip
    for suffix, side in zip(("src", "tgt"), lines):
        text_files.write_lines(corpus.path.with_suffix(f".{suffix}"), side)
    encoded, _ = corpus(sides)
    for i in range(300):
        assert sides.source.decode(encoded.source(i).tolist()) == lines[0][i]
        assert sides.target.decode(encoded.target(i).tolist()) == lines[1][i]


def test_documents_are_carried_along(corpus, tmp_path):
    text_files.write_lines(tmp_path / "t.docs", ["7", "7", "0", "123456789012"])
    assert corpus_paths.documents_path(str(tmp_path / "t")) == str(tmp_path / "t.docs")
    assert corpus_paths.documents_path(str(tmp_path / "u")) is None
    encoded, _ = corpus(documents=str(tmp_path / "t.docs"))
    assert encoded.documents.tolist() == [7, 7, 0, 123456789012]
    without, fresh = corpus()
    assert fresh and without.documents.tolist() == [-1] * 4


def test_the_arrays_are_read_only_and_on_disk(corpus):
    encoded, _ = corpus()
    for array in encoded:
        assert isinstance(array, np.memmap)
        with pytest.raises(ValueError):
            array[0] = 1


def test_a_side_without_any_word(corpus):
    text_files.write_lines(corpus.path, ["", " ", "", "\t"])
    encoded, _ = corpus()
    assert len(encoded) == 4 and encoded.source(3).tolist() == [] and len(encoded.target(3)) == 6
    reread, fresh = corpus()
    assert not fresh and len(reread.source_ids) == 0


def test_text_is_encoded_once(corpus):
    first, fresh = corpus()
    reread, second_is_fresh = corpus()
    assert (fresh, second_is_fresh) == (True, False)
    for expected, actual in zip(first, reread):
        assert np.array_equal(expected, actual)
    os.utime(corpus.path, (1, 1))  # what counts is what the file holds
    assert not corpus()[1]


def test_text_that_changes_while_it_is_read_is_refused(corpus, monkeypatch):
    """Else the ids of the new text would be those of the old one for ever."""
    write = encode_module._write

    def write_another_text(languages, paths, folder):
        text_files.write_lines(corpus.path, [*SOURCE[:3], "c"])
        write(languages, paths, folder)

    with monkeypatch.context() as patch:
        patch.setattr(encode_module, "_write", write_another_text)
        with pytest.raises(UserError, match="has changed while it was read"):
            corpus()
    text_files.write_lines(corpus.path, SOURCE)
    assert corpus()[1], "nothing was kept"


def test_whatever_changes_the_ids_changes_the_place(corpus, tmp_path):
    corpus()
    assert not corpus()[1]
    learn_bpe([str(corpus.path)] * 3, str(tmp_path / "codes"), 1)
    codes = BpeSegmenter(str(tmp_path / "codes"))
    plain = languages()
    changed = [
        languages(source=["b", "a", "c"]),
        languages(target=["X", "Y"]),
        plain._replace(source=plain.source._replace(segmenter=codes)),
        plain._replace(target=plain.target._replace(segmenter=codes)),
        LanguagePair(*reversed(plain)),
    ]
    for sides in changed:
        assert corpus(sides)[1]
        assert not corpus(sides)[1]
    text_files.write_lines(corpus.path, [*SOURCE[:3], "c"])
    encoded, fresh = corpus()
    assert fresh and encoded.source(3).tolist() == [5]
    text_files.write_lines(corpus.path, SOURCE)
    assert not corpus()[1]


def test_the_layout_is_part_of_the_place(corpus, monkeypatch):
    corpus()
    monkeypatch.setattr(encode_module, "_FORMAT", encode_module._FORMAT + 1)
    assert corpus()[1]


def damage(folder, name, kind):
    path = folder / name
    if kind == "gone":
        path.unlink()
    elif kind == "shorter":
        path.write_bytes(path.read_bytes()[:-1])
    elif kind == "flipped":
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 16
        path.write_bytes(content)
    elif kind == "longer":
        path.write_bytes(path.read_bytes() + b"\0\0\0\0")
    else:
        path.write_text(kind)


FILES = ["source.ids", "source.starts", "target.ids", "target.starts", "documents"]


@pytest.mark.parametrize(
    "name, kind",
    [(name, kind) for name in FILES for kind in ("gone", "shorter", "longer", "flipped")]
    + [
        ("sha256.json", kind)
        for kind in ("gone", "shorter", "flipped", "", "[]", "{}", "null", "[" * 99999)
    ],
)
def test_a_damaged_folder_is_rebuilt(corpus, name, kind):
    undamaged, _ = corpus()
    copies = [array.copy() for array in undamaged]
    (folder,) = corpus.folder.iterdir()
    damage(folder, name, kind)
    repaired, fresh = corpus()
    assert fresh
    for expected, actual in zip(copies, repaired):
        assert np.array_equal(expected, actual)
    assert not corpus()[1]
    assert list(corpus.folder.iterdir()) == [folder]


def test_what_a_killed_run_left_is_passed_over_and_removed(corpus):
    corpus()
    (folder,) = corpus.folder.iterdir()
    shutil.move(folder, f"{folder}.tmp1")
    damage(corpus.folder / f"{folder.name}.tmp1", "target.ids", "gone")
    _, fresh = corpus()
    assert fresh and list(corpus.folder.iterdir()) == [folder]


@pytest.mark.parametrize("lines", [["a"], ["a"] * 9])
def test_a_corpus_that_is_refused_leaves_nothing(corpus, lines):
    text_files.write_lines(corpus.path, lines)
    with pytest.raises(UserError, match="unequal line counts"):
        corpus()
    assert list(corpus.folder.iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(corpus):
    corpus.folder.write_text("a file")
    with pytest.raises(UserError, match="cannot write the encoded corpus in .*encoded"):
        corpus()
    assert corpus.folder.read_text() == "a file"


def test_missing_text_is_named(corpus):
    corpus.path.unlink()
    with pytest.raises(UserError, match=r"no such file: .*t\.src"):
        corpus()


def test_the_arrays_have_the_right_types(corpus):
    corpus()
    (folder,) = corpus.folder.iterdir()
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == {
        "source.ids": 4 * 7, "target.ids": 4 * 9, "source.starts": 8 * 5,
        "target.starts": 8 * 5, "documents": 8 * 4,
        "sha256.json": (folder / "sha256.json").stat().st_size,
    }  # fmt: skip
    sums = json.loads((folder / "sha256.json").read_text())
    assert sorted(sums) == sorted(FILES)
    for name, digest in sums.items():
        assert digest == hashlib.sha256((folder / name).read_bytes()).hexdigest()


def test_what_another_process_has_encoded_meanwhile_is_taken(corpus, monkeypatch):
    write = encode_module._write
    written = []

    def write_twice(sides, paths, folder):
        write(sides, paths, folder)
        if not written:  # the other process ends first
            written.append(folder)
            corpus()

    monkeypatch.setattr(encode_module, "_write", write_twice)
    monkeypatch.setattr(shutil, "rmtree", _only_temporary(shutil.rmtree))
    arrays, _ = corpus()
    assert arrays.source_ids.tolist() == corpus()[0].source_ids.tolist()


def _only_temporary(rmtree):
    def remove(path, **options):
        assert ".tmp-" in str(path) or not os.path.exists(path), "another process maps it"
        rmtree(path, **options)

    return remove

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections import Counter

import pytest

from tfmann.cli.synthetic import main
from tfmann.errors import UserError
from tfmann.synthetic import generate, write_corpus, writer

SIZES = {"train": 1500, "dev": 60, "test": 60}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("synthetic")
    write_corpus(folder, seed=3, **SIZES)
    return folder


def lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def digest(folder):
    """SHA-256 of all files but README, whose wording may change."""
    files = [(name, text) for name, text in bytes_of(folder).items() if name != "README"]
    joined = b"".join(name.encode() + text for name, text in files)
    return hashlib.sha256(joined).hexdigest()


def test_files_are_the_same_bytes_for_the_same_seed(corpus, tmp_path):
    write_corpus(tmp_path / "again", seed=3, **SIZES)
    write_corpus(tmp_path / "other", seed=4, **SIZES)
    assert bytes_of(corpus) == bytes_of(tmp_path / "again")
    assert bytes_of(corpus) != bytes_of(tmp_path / "other")
    write_corpus(tmp_path / "again", seed=4, **SIZES)  # over a corpus of ours
    assert bytes_of(tmp_path / "again") == bytes_of(tmp_path / "other")


def test_golden_bytes(corpus):
    """Golden: notices any change of the text, between Python versions too. Not a sign of error."""
    assert digest(corpus) == "e51cccd1955a41571fa476b4b19c8bcf5fae690eedbec1b649a7d188cb49df18"


KILLED = """
import os, sys
from tfmann.synthetic import writer
writer._write_splits = lambda *arguments: os._exit(9)
writer.write_corpus(sys.argv[1], 30, 2, 2, 1)
"""


def test_what_a_killed_command_left_is_removed(tmp_path):
    assert subprocess.run([sys.executable, "-c", KILLED, tmp_path]).returncode == 9
    assert len(list(tmp_path.iterdir())) == 1
    write_corpus(tmp_path, 30, 2, 2, seed=1)
    write_corpus(tmp_path / "whole", 30, 2, 2, seed=1)
    names = {path.name for path in (tmp_path / "whole").iterdir()}
    assert {path.name for path in tmp_path.iterdir()} == {"whole", *names}


def test_sigterm_leaves_nothing_behind(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(writer, "_write_splits", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    assert main([f"--output_dir={tmp_path}"]) == 143
    assert "ended by SIGTERM" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_files_hold_the_examples(corpus):
    expected = generate(SIZES["train"], seed=3)
    assert lines(corpus / "train.src") == [" ".join(pair.source) for pair in expected]
    assert lines(corpus / "train.tgt") == [" ".join(pair.target) for pair in expected]
    assert lines(corpus / "train.docs") == [str(pair.document) for pair in expected]
    links = [
        tuple(tuple(map(int, link.split("-"))) for link in line.split())
        for line in lines(corpus / "train.align")
    ]
    assert links == [pair.alignment for pair in expected]
    for split, size in SIZES.items():
        for suffix in ("src", "tgt", "docs", "align"):
            assert len(lines(corpus / f"{split}.{suffix}")) == size
    assert "SYNTHETIC" in (corpus / "README").read_text(encoding="utf-8")
    assert not [path for path in corpus.iterdir() if path.name.startswith(".")]


def test_splits_share_no_pair(corpus):
    splits = [
        set(zip(lines(corpus / f"{split}.src"), lines(corpus / f"{split}.tgt"))) for split in SIZES
    ]
    assert not splits[0] & splits[1]
    assert not splits[0] & splits[2]
    assert not splits[1] & splits[2]


def test_pairs_of_train_are_redrawn_for_test(monkeypatch, tmp_path):
    """With one stream for all splits every first draw collides, and still no pair is shared."""
    draws = writer.Draws
    monkeypatch.setattr(writer, "Draws", lambda seed, purpose: draws(seed, "train"))
    write_corpus(tmp_path, seed=3, **SIZES)
    test_splits_share_no_pair(tmp_path)


@pytest.mark.parametrize("side", ["src", "tgt"])
def test_vocabulary_is_of_train_and_covers_dev_and_test(corpus, side):
    vocabulary = lines(corpus / f"vocab.{side}")
    assert vocabulary[:3] == ["<unk>", "<s>", "</s>"]
    counts = Counter(word for line in lines(corpus / f"train.{side}") for word in line.split())
    assert vocabulary[3:] == sorted(counts, key=lambda word: (-counts[word], word))
    for split in ("dev", "test"):
        words = {word for line in lines(corpus / f"{split}.{side}") for word in line.split()}
        assert words <= set(counts)


def test_training_set_too_small_is_refused_and_leaves_nothing(tmp_path):
    with pytest.raises(UserError, match="more training sentences"):
        write_corpus(tmp_path, train=3, dev=50, test=50, seed=1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("train", "dev", "test"), [(0, 1, 1), (10, -1, 1), (10, 1, -1)])
def test_impossible_sizes_are_refused(tmp_path, train, dev, test):
    with pytest.raises(UserError, match="at least 1"):
        write_corpus(tmp_path, train=train, dev=dev, test=test, seed=1)


def test_files_of_something_else_are_not_written_over(tmp_path):
    (tmp_path / "train.src").write_text("mine\n", encoding="utf-8")
    with pytest.raises(UserError, match="train.src"):
        write_corpus(tmp_path, seed=3, **SIZES)
    assert bytes_of(tmp_path) == {"train.src": b"mine\n"}


def test_command_writes_a_corpus(corpus, tmp_path, capsys):
    sizes = [f"--{split}={size}" for split, size in SIZES.items()]
    assert main([f"--output_dir={tmp_path / 'a'}", "--seed=3", *sizes]) == 0
    assert bytes_of(tmp_path / "a") == bytes_of(corpus)
    assert main([f"--output_dir={tmp_path / 'b'}", "--seed=3", "--document_tense", *sizes]) == 0
    assert lines(tmp_path / "b" / "train.tgt") == lines(corpus / "train.tgt")
    assert lines(tmp_path / "b" / "train.src") != lines(corpus / "train.src")
    assert "--document_tense" in (tmp_path / "b" / "README").read_text(encoding="utf-8")
    assert capsys.readouterr().out.count("synthetic") == 2


def test_command_says_what_is_wrong_in_one_line(tmp_path, capsys):
    path = tmp_path / "file"
    path.write_text("", encoding="utf-8")
    assert main([f"--output_dir={path}"]) == 1
    message = capsys.readouterr().err
    assert str(path) in message
    assert message.count("\n") == 1
    with pytest.raises(SystemExit) as stopped:
        main([f"--output_dir={tmp_path}", "--trian=5"])
    assert stopped.value.code == 2

"""Invalid settings, vocabularies, subword models, manifests and archives.

Each must be accepted, or refused with a `UserError`. A refusal leaves nothing behind, no file may
appear outside the folder, and an archive never extracts more than allowed.
"""

from __future__ import annotations

import functools
import gzip
import io
import json
import random
import tarfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from benchmarks.trust.judge import Folder, judge_command
from tfmann import nmt
from tfmann.data import lexicon, subword
from tfmann.data.vocab import Vocabulary
from tfmann.datasets import archives, catalog
from tfmann.datasets.manifest import load_manifest
from tfmann.errors import UserError
from tfmann.evaluation import alignment

_ROOT = Path(__file__).resolve().parents[2]
_MOST = 2000  # bytes that an archive may extract to

_name = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_value = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 10**20), st.floats(), _name),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_name, inner, max_size=3)),
    max_leaves=5,
)


@functools.cache
def _shipped(folder: str) -> list[str]:
    return sorted(path.read_text(encoding="utf-8") for path in (_ROOT / folder).rglob("*.json"))


def _changed(record: Any, stream: random.Random, value: Any) -> Any:
    """Returns a copy of JSON data with something replaced, renamed or left out."""
    if isinstance(record, dict) and record and stream.random() < 0.9:
        key = stream.choice(list(record))
        others = {k: v for k, v in record.items() if k != key}
        change = stream.randrange(4)
        if change == 0:
            return others
        if change == 1:
            return {**others, key + "s": record[key]}
        return {**others, key: _changed(record[key], stream, value)}
    if isinstance(record, list) and record and stream.random() < 0.9:
        index = stream.randrange(len(record))
        return [*record[:index], _changed(record[index], stream, value), *record[index + 1 :]]
    return value


def _spoilt_json(folder: str) -> st.SearchStrategy[bytes]:
    """Draws shipped JSON files with a change in the data or in the bytes."""
    files = st.integers(0, len(_shipped(folder)) - 1).map(lambda i: _shipped(folder)[i])
    changed = st.builds(
        lambda text, seed, value: json.dumps(
            _changed(json.loads(text), random.Random(seed), value)
        ).encode(),
        files,
        st.integers(0, 10**6),
        _value,
    )
    return st.one_of(changed, changed, _spoilt(files.map(str.encode)), st.binary(max_size=60))


def _spoilt(content: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Draws bytes that are cut short, changed, or inserted."""

    def spoil(data: bytes, seed: int, changes: int) -> bytes:
        stream = random.Random(seed)
        if not data or changes == 0:
            return data[: stream.randint(0, len(data))]
        spoilt = bytearray(data)
        for _ in range(changes):
            begin = stream.randrange(len(spoilt))
            spoilt[begin : begin + stream.randint(0, 2)] = stream.randbytes(stream.randint(0, 2))
        return bytes(spoilt)

    return st.builds(spoil, content, st.integers(0, 10**6), st.integers(0, 6))


settings = _spoilt_json("hparams")
manifests = st.one_of(st.sampled_from(_shipped("data")).map(str.encode), _spoilt_json("data"))


def settings_refused(folder: Folder, content: bytes) -> bool:
    """Reads settings without a corpus: nothing can be trained, and no run folder may appear."""
    folder.write("base.json", (_ROOT / "hparams" / "tiny" / "base.json").read_bytes())
    path, out_dir = folder.write("h.json", content), folder.path / "run"
    outcome = judge_command(
        lambda: nmt.main([f"--hparams_path={path}", f"--out_dir={out_dir}"]), out_dir, path
    )
    assert not outcome.accepted
    return False


def manifest_read(folder: Folder, content: bytes) -> bool:
    """Reads a manifest, with a folder that has none of its files."""
    try:
        manifest = load_manifest(folder.write("m.json", content))
    except UserError:
        return False
    (folder.path / "corpus").mkdir()
    try:
        catalog.use_local(manifest, folder.path / "corpus")
    except UserError:
        return True
    raise AssertionError("a corpus without its files was accepted")


_vocabulary_lines = st.lists(
    st.one_of(_name, st.sampled_from(["<unk>", "<s>", "</s>", "hund", "hund 3", "", "\u2028"])),
    max_size=8,
)
_tokens = st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=5)
vocabularies = st.one_of(
    st.builds(
        lambda tokens, order: "\n".join(order.sample(tokens, len(tokens))).encode(),
        st.lists(_tokens, max_size=8).map(lambda tokens: ["<unk>", "<s>", "</s>", *tokens]),
        st.randoms(use_true_random=False),
    ),
    _vocabulary_lines.map(lambda lines: "\n".join(lines).encode()),
    st.binary(max_size=40),
)


def vocabulary_read(folder: Folder, content: bytes) -> bool:
    """Reads a vocabulary, which must survive being saved and loaded."""
    try:
        vocabulary = Vocabulary.load(folder.write("vocab", content))
    except UserError:
        return False
    vocabulary.save(folder.path / "again")
    assert Vocabulary.load(folder.path / "again") == vocabulary
    assert vocabulary.decode(vocabulary.encode(vocabulary.tokens)) == list(vocabulary.tokens)
    return True


_codes_lines = st.lists(
    st.one_of(
        _name,
        st.sampled_from(["#version: 0.2", "#version: 0.1", "#version: 9", "h u", "hu nd</w>", "a"]),
    ),
    max_size=8,
)
_merges = st.lists(st.sampled_from(["h u", "n d</w>", "hu nd</w>", "g r", "ö ß"]), min_size=1)
codes = st.one_of(
    _merges.map(lambda lines: "\n".join(["#version: 0.2", *lines]).encode()),
    _codes_lines.map(lambda lines: "\n".join(lines).encode()),
    st.binary(max_size=40),
)


def codes_read(folder: Folder, content: bytes) -> bool:
    """Reads merge operations and segments a line by them."""
    try:
        segmenter = subword.make_segmenter("bpe", folder.write("codes", content))
    except UserError:
        return False
    line = "hund huhu größe"
    assert segmenter.join(segmenter.segment(line)) == line
    return True


@functools.cache
def _sentencepiece_model() -> bytes:
    stream = random.Random(1)
    words = ["hund", "katze", "haus", "hunde", "katzen", "größe", "sieht", "und"]
    lines = [" ".join(stream.choices(words, k=6)) for _ in range(200)]
    with io.BytesIO() as model:
        import sentencepiece

        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=model, vocab_size=25, minloglevel=2
        )
        return model.getvalue()


_whole_model = st.builds(_sentencepiece_model)
sentencepiece_models = st.one_of(_whole_model, _spoilt(_whole_model), st.binary(max_size=60))


def sentencepiece_read(folder: Folder, content: bytes) -> bool:
    """Reads a SentencePiece model and segments a line by it."""
    path = folder.write("spm.model", content)
    try:
        vocabulary = subword.sentencepiece_vocabulary(path)
        pieces = subword.make_segmenter("spm", path).segment("hund und katze")
    except UserError:
        return False
    vocabulary.encode(pieces)
    return True


def lexicon_read(folder: Folder, content: bytes) -> bool:
    """Reads a lexicon of `--replace_unk`."""
    try:
        lexicon.read(folder.write("lexicon", content))
    except UserError:
        return False
    return True


def links_read(folder: Folder, content: bytes) -> bool:
    """Reads word links in Pharaoh format."""
    try:
        alignment.read_pharaoh(folder.write("links", content))
    except UserError:
        return False
    return True


_entries = [f"{source}\tdog\t{weight}" for source in ("hund", "größe") for weight in (0, 0.5, 1)]
_no_entries = ["a\tb\tnan", "a b 2", "a\tb\t-1", "a\tb", "a\tb\tinf", "a\tb\t0.1\tc"]
lexicons = st.one_of(
    st.lists(st.sampled_from(_entries), max_size=5),
    st.lists(st.one_of(_name, st.sampled_from(_entries + _no_entries)), max_size=5),
).map(lambda lines: "\n".join(lines).encode())
_link = st.one_of(
    st.builds("{}{}{}".format, st.integers(-1, 9), st.sampled_from("-p?x"), st.integers(0, 10**20)),
    _name,
)
links = st.lists(st.lists(_link, max_size=4).map(" ".join), max_size=4).map(
    lambda lines: "\n".join(lines).encode()
)

_member = st.tuples(
    st.one_of(
        st.sampled_from(
            ["a", "b/c", "./d", "../e", "/etc/f", "g/../../h", "..", "", "a\\b", "c:\\d", "a/b/"]
        ),
        _name,
    ),
    st.one_of(st.binary(max_size=50), st.integers(0, 5000).map(bytes)),
    st.sampled_from([tarfile.REGTYPE] * 6
                    + [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]),
)  # fmt: skip


def _tar(members: list[tuple[str, bytes, bytes]], mode: Any) -> bytes:
    with io.BytesIO() as stream:
        with tarfile.open(fileobj=stream, mode=mode) as tar:
            for name, content, kind in members:
                info = tarfile.TarInfo(name)
                info.type, info.linkname = kind, "../outside"
                info.size = len(content) if kind == tarfile.REGTYPE else 0
                tar.addfile(info, io.BytesIO(content))
        return stream.getvalue()


def _zip(members: list[tuple[str, bytes, bytes]]) -> bytes:
    with io.BytesIO() as stream:
        with zipfile.ZipFile(stream, "w") as bundle, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the same name twice
            for name, content, kind in members:
                info = zipfile.ZipInfo(name or "x")
                info.external_attr = (0o120777 if kind == tarfile.SYMTYPE else 0o100644) << 16
                bundle.writestr(info, content, zipfile.ZIP_DEFLATED)
        return stream.getvalue()


_harmless = st.tuples(
    st.sampled_from(["a", "b/c", "./d", "größe"]), st.binary(max_size=50), st.just(tarfile.REGTYPE)
)
_members = st.one_of(st.lists(_member, max_size=4), st.lists(_harmless, max_size=2))
_archives = st.one_of(
    st.builds(_tar, _members, st.sampled_from(["w", "w:gz", "w:bz2", "w:xz"])),
    st.builds(_zip, _members),
    st.binary(max_size=5000).map(gzip.compress),
    st.just(gzip.compress(bytes(10**6))),  # a bomb: it grows a thousandfold
)
archive_files = st.one_of(_archives, _archives, _spoilt(_archives), st.binary(max_size=60))


def archive_extracted(folder: Folder, content: bytes) -> bool:
    """Extracts an archive: all of it into the folder, or nothing."""
    archive, corpus = folder.write("archive", content), folder.path / "corpus"
    try:
        extracted = archives.extract(archive, corpus, _MOST)
    except UserError:
        assert not corpus.exists() or not any(corpus.iterdir()), "refused, but files were left"
        return False
    files = [path for path in corpus.rglob("*") if not path.is_dir()]
    assert sorted(files) == sorted(extracted)
    assert all(path.is_file() and not path.is_symlink() for path in files)
    assert sum(path.stat().st_size for path in files) <= _MOST
    return True

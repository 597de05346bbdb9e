"""Segmentation: words, byte pairs, sentence pieces, and their inverse."""

import itertools
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tfmann.data import subword
from tfmann.data.subword import (
    BpeSegmenter,
    WordSegmenter,
    make_segmenter,
    sentencepiece_segment,
    sentencepiece_vocabulary,
)
from tfmann.data.subword_learning import learn_bpe, train_sentencepiece
from tfmann.data.vocab import SPECIALS
from tfmann.errors import UsageError, UserError


def sentences(count=300, seed=3):
    draw = random.Random(seed)
    stems, ends = ["low", "new", "wide", "slow", "great"], ["", "er", "est", "ly", "ness"]
    return [
        " ".join(draw.choice(stems) + draw.choice(ends) for _ in range(draw.randint(2, 9)))
        for _ in range(count)
    ]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text"
    path.write_text("\n".join(sentences()) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def codes(text):
    path = text.parent / "codes"
    learn_bpe([text], path, num_merges=30)
    return path


@pytest.fixture(scope="module")
def model(text):
    return train_sentencepiece([text], text.parent / "pieces", vocab_size=40)


def test_words_are_split_at_spaces_tabs_and_line_ends_only():
    words = WordSegmenter()
    assert words.segment("  a  b\tc\r") == ["a", "b", "c"]
    assert words.segment("a\u00a0b c\u2028d \x85 \x0c") == ["a\u00a0b", "c\u2028d", "\x85", "\x0c"]
    assert words.segment("") == words.segment(" \t ") == []
    assert words.join(["a", "b"]) == "a b"
    assert words.join([]) == ""


def bpe_by_hand(word, merges):
    """Merges by rank, as arXiv 1508.07909 algorithm 1 applies them."""
    symbols = [*word[:-1], word[-1] + "</w>"]
    for left, right in merges:
        out, i = [], 0
        while i < len(symbols):
            if symbols[i : i + 2] == [left, right]:
                out.append(left + right)
                i += 2
            else:
                out.append(symbols[i])
                i += 1
        symbols = out
    symbols[-1] = symbols[-1][: -len("</w>")]
    return [unit + "@@" for unit in symbols[:-1]] + symbols[-1:]


def test_bpe_agrees_with_merging_by_hand(codes):
    merges = [tuple(line.split(" ")) for line in codes.read_text().splitlines()[1:]]
    assert len(merges) == 30
    segmenter = BpeSegmenter(codes)
    for line in sentences(50, seed=4) + ["lowlow x newestly"]:
        expected = [unit for word in line.split() for unit in bpe_by_hand(word, merges)]
        assert segmenter.segment(line) == expected
        assert segmenter.join(expected) == line
    assert any("@@" in token for token in segmenter.segment("newestly"))
    assert segmenter.segment(" \t") == []


def test_text_that_is_segmented_already_stays_as_it_is():
    segmenter = BpeSegmenter()
    assert segmenter.segment("low@@ est  new") == ["low@@", "est", "new"]
    assert segmenter.join(["low@@", "est", "new", "wid@@"]) == "lowest new wid"
    assert segmenter.join(["a@@", "b@@", "c"]) == "abc"
    assert segmenter.join(["mail@@home"]) == "mail@@home"


def test_the_memory_of_segmented_words_is_bounded(codes, monkeypatch):
    monkeypatch.setattr(subword, "_CACHED_WORDS", 50)
    segmenter = BpeSegmenter(codes)
    for i in range(500):
        segmenter.segment(f"low{i}er")
        assert len(segmenter._bpe.cache) <= 51


def test_another_thread_may_empty_the_memory(codes, monkeypatch):
    """As in a server, which segments phrases in one thread and lines in another."""
    segmenter = BpeSegmenter(codes)
    expected = segmenter.segment("lower")

    class Interrupted(dict):
        def __contains__(self, word):
            is_there = super().__contains__(word)
            if is_there:
                monkeypatch.setattr(subword, "_CACHED_WORDS", 0)
                segmenter.segment("another thread")
            return is_there

    segmenter._bpe.cache = Interrupted(segmenter._bpe.cache)
    assert segmenter.segment("lower") == expected


def test_learning_bpe_is_deterministic_and_stops_when_nothing_is_left(text, codes, tmp_path):
    second_codes = tmp_path / "again"
    learn_bpe([text], second_codes, num_merges=30)
    assert second_codes.read_bytes() == codes.read_bytes()
    learn_bpe([text], second_codes, num_merges=10_000)
    assert 30 < len(second_codes.read_text().splitlines()) < 1000
    segmenter = BpeSegmenter(second_codes)
    assert segmenter.segment("lowest") == ["lowest"]


@pytest.mark.parametrize("content", ["", "\n", "a b c\n", "ab\n"])
def test_text_with_nothing_to_merge_is_refused(tmp_path, content):
    (tmp_path / "text").write_text(content)
    with pytest.raises(UserError, match="nothing to merge"):
        learn_bpe([tmp_path / "text"], tmp_path / "codes", num_merges=5)
    assert not (tmp_path / "codes").exists()


@pytest.mark.parametrize(
    "content, words",
    [
        ("#version: 0.2\na b\nabc\n", "line 3: expected two symbols"),
        ("#version: 0.2\na b\n\nc d\n", "line 3"),
        ("a b c\n", "line 1"),
        ("a\tb\n", "line 1"),
        ("#version: 0.9\na b\n", "versions 0.1 and 0.2"),
        ("#version: 0.2\n", "no merge operations"),
        ("", "no merge operations"),
        (b"a \xff\n", "line 1: not UTF-8"),
    ],
)
def test_broken_codes_are_named_by_line(tmp_path, content, words):
    path = tmp_path / "codes"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=words):
        BpeSegmenter(path)


def test_a_missing_model_is_named(tmp_path):
    for option in ("bpe", "spm"):
        with pytest.raises(UserError, match="no such file: .*absent"):
            make_segmenter(option, tmp_path / "absent")


def test_pieces_spell_the_line_again(model):
    segmenter = make_segmenter("spm", model)
    for line in sentences(20, seed=5):
        pieces = segmenter.segment(line)
        assert "".join(pieces).replace("▁", " ").strip() == line
        assert segmenter.join(pieces) == line
    assert segmenter.segment("") == []
    assert segmenter.join([]) == ""
    assert "猫" in "".join(segmenter.segment("low 猫"))
    assert segmenter.join(segmenter.segment("low 猫")) == "low 猫"


def test_pieces_spell_what_unicode_calls_alike_as_it_was(tmp_path):
    """NFKC would make ASCII of all that a reference has and the model should write."""
    line = "马看见鸟（12\u00a0m²），然后睡觉！ … ½ ﬁ x\u3000ｙ"
    (tmp_path / "text").write_text(f"{line}\n" * 20, encoding="utf-8")
    path = train_sentencepiece([tmp_path / "text"], tmp_path / "pieces", vocab_size=27)
    segmenter, segment = make_segmenter("spm", path), sentencepiece_segment(path)
    vocabulary = sentencepiece_vocabulary(path)
    assert segmenter.join(segmenter.segment(line)) == line
    assert segment(line) == segmenter.segment(line)
    assert 0 not in vocabulary.encode(segment(line))
    noisy = "\ufeff" + line.replace(" ", "\t\u200b\x07") + "\t"
    assert segment(noisy) == segmenter.segment(noisy) == segment(line)
    assert tempfile.gettempdir().encode() not in Path(path).read_bytes()


def test_rare_characters_are_pieces_too(tmp_path):
    """The library's coverage of 0.9995 would leave out what occurs once in 40,000 letters."""
    usual = [*sentences(1200), "Ärger über 12 m² um 15:30!"]
    usual += [f"{a}{b}{c} {a}{c}{b}{a}" for a, b, c in itertools.permutations("abcdefghik", 3)]
    usual.append(usual.pop(1200))
    (tmp_path / "text").write_text("\n".join(usual), encoding="utf-8")
    log = []
    path = train_sentencepiece([tmp_path / "text"], tmp_path / "pieces", 180, log.append)
    vocabulary = sentencepiece_vocabulary(path)
    assert 0 not in vocabulary.encode(sentencepiece_segment(path)(usual[-1])) and not log


def test_where_there_are_too_many_characters_the_rarest_are_named(tmp_path):
    usual = "".join(chr(0x4E00 + i) for i in range(30))
    rare = [chr(0x6E00 + i) for i in range(25)]
    words = [usual[i : i + 4] for i in range(27)]
    lines = [f"{usual} {a}{b}" for a in words for b in words] * 3 + rare
    (tmp_path / "text").write_text("\n".join(lines), encoding="utf-8")
    log = []
    path = train_sentencepiece([tmp_path / "text"], tmp_path / "pieces", 60, log.append)
    vocabulary = sentencepiece_vocabulary(path)
    assert 0 not in vocabulary.encode(sentencepiece_segment(path)(usual))
    (message,) = log
    assert "25 of 56 different characters are too rare for 60 pieces" in message
    assert message.endswith("become <unk>: " + " ".join(rare[:20]) + " ...")


def test_pieces_are_those_of_sentencepiece_itself(model):
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=model)
    segmenter = make_segmenter("spm", model)
    for line in sentences(20, seed=6):
        assert segmenter.segment(line) == processor.encode(line, out_type=str)


def test_training_pieces_twice_gives_the_same_file(text, model, tmp_path):
    second_model = train_sentencepiece([text], tmp_path / "again", vocab_size=40)
    assert second_model == str(tmp_path / "again.model")
    assert Path(second_model).read_bytes() == Path(model).read_bytes()


def test_the_vocabulary_of_a_model_covers_what_it_segments(model):
    vocabulary = sentencepiece_vocabulary(model)
    assert len(vocabulary) == 40
    assert vocabulary.tokens[:3] == SPECIALS
    segmenter = make_segmenter("spm", model)
    for line in sentences(20, seed=7):
        assert 0 not in vocabulary.encode(segmenter.segment(line))


def test_a_line_break_among_the_bytes_of_a_model_does_not_break_a_line(text, tmp_path):
    sentencepiece = pytest.importorskip("sentencepiece")
    prefix = str(tmp_path / "bytes")
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=prefix, vocab_size=300, byte_fallback=True,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    joined = subword.make_segmenter("spm", f"{prefix}.model").join(
        ["a", "<0x0A>", "b", "<0x0D>", "c"]
    )
    assert joined == "a b c"


def test_the_vocabulary_of_a_model_with_other_specials(text):
    import sentencepiece

    prefix = text.parent / "other_specials"
    sentencepiece.SentencePieceTrainer.train(
        input=str(text),
        model_prefix=str(prefix),
        vocab_size=40,
        unk_piece="<oov>",
        bos_id=-1,
        pad_id=3,
        user_defined_symbols=["<tag>", "\t"],
        minloglevel=2,
    )
    vocabulary = sentencepiece_vocabulary(f"{prefix}.model")
    assert vocabulary.tokens[:4] == (*SPECIALS, "<tag>")
    assert "<oov>" not in vocabulary and "<pad>" not in vocabulary
    # 40 less <oov>, </s>, <pad> and the tab, which no line of a vocabulary file can hold
    assert len(vocabulary) == 36 + len(SPECIALS)


@pytest.mark.parametrize("line", ["z " * 3000, "zz\u2585zz"], ids=["long", "U+2585"])
def test_lines_that_the_library_would_leave_out_are_trained_on(text, tmp_path, line):
    other = tmp_path / "other"
    other.write_text(f"{line}\n" * 20, encoding="utf-8")
    model = train_sentencepiece([text, other], tmp_path / "m", vocab_size=40)
    tokens = sentencepiece_vocabulary(model).tokens
    assert "z" in "".join(tokens)


def test_pieces_that_cannot_be_trained_say_why(text, tmp_path):
    with pytest.raises(UserError, match="vocab_size=5000 .*Vocabulary size too high"):
        train_sentencepiece([text], tmp_path / "m", vocab_size=5000)
    (tmp_path / "empty").write_text("")
    with pytest.raises(UserError, match="empty: no text$"):
        train_sentencepiece([tmp_path / "empty"], tmp_path / "m", vocab_size=50)
    (tmp_path / "latin").write_bytes(b"fine\n\xe9\n")
    with pytest.raises(UserError, match=r"^\S*latin, line 2: not UTF-8"):
        train_sentencepiece([tmp_path / "latin"], tmp_path / "m", vocab_size=50)
    assert not (tmp_path / "m.model").exists()


@pytest.mark.parametrize("cut", [0, 10, 1000])
def test_a_broken_model_is_refused(model, tmp_path, cut):
    path = tmp_path / "broken.model"
    path.write_bytes(Path(model).read_bytes()[:cut])
    with pytest.raises(UserError, match="broken.model is no SentencePiece model"):
        make_segmenter("spm", path)
    with pytest.raises(UserError, match="broken.model is no SentencePiece model"):
        sentencepiece_vocabulary(path)


def test_warnings_of_an_older_package_are_not_shown(model, tmp_path, monkeypatch):
    package = tmp_path / "tensorflow_text.py"
    package.write_text(
        "import warnings\nwarnings.warn('an import is deprecated', UserWarning)\n"
        "SentencepieceTokenizer = lambda **options: options\n"
    )
    monkeypatch.delitem(sys.modules, "tensorflow_text", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    segmenter = make_segmenter("spm", model)  # a warning would be an error in this test
    del sys.modules["tensorflow_text"]
    assert segmenter.tokenizer["model"] == Path(model).read_bytes()


@pytest.mark.parametrize(
    "missing, cure",
    [
        ("tensorflow_hub", r"pip install tensorflow-hub"),
        ("tensorflow_text", r"pip install 'tensorflow-text==2\.\d+\.\*'"),
    ],
)
def test_a_missing_package_is_named_with_its_cure(model, tmp_path, monkeypatch, missing, cure):
    """As tensorflow_text 2.15 does, this one imports tensorflow_hub."""
    (tmp_path / "tensorflow_text.py").write_text("import tensorflow_hub\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tensorflow_text", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)  # as if it was not installed
    with pytest.raises(UserError) as refused:
        make_segmenter("spm", model)
    message = str(refused.value)
    assert f"(import of {missing} halted" in message and "\n" not in message
    assert re.search(f": {cure}$", message)


def test_fingerprints_tell_segmenters_apart(codes, model, tmp_path):
    other_codes = tmp_path / "other"
    other_codes.write_text("#version: 0.2\nl o\n")
    segmenters = [
        make_segmenter(""),
        make_segmenter("bpe"),
        make_segmenter("bpe", codes),
        make_segmenter("bpe", other_codes),
        make_segmenter("spm", model),
    ]
    assert len({segmenter.fingerprint for segmenter in segmenters}) == len(segmenters)
    assert make_segmenter("bpe", codes).fingerprint == segmenters[2].fingerprint


@pytest.mark.parametrize("option, path", [("BPE", None), ("spm", None), ("", "codes")])
def test_impossible_combinations_are_usage_errors(option, path):
    with pytest.raises(UsageError, match="subword"):
        make_segmenter(option, path)


def test_the_corpus_imports_without_tensorflow():
    program = (
        "import sys, tfmann.datasets.catalog, tfmann.data.subword as s; s.make_segmenter(''); "
        "sys.exit(any(m in sys.modules for m in ('tensorflow', 'sentencepiece', 'subword_nmt')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


SPM_TRAINING = """
import signal, sys
from tfmann.data.subword_learning import train_sentencepiece
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background
print("started", flush=True)
train_sentencepiece([sys.argv[1]], sys.argv[1], 200)
"""


def test_ctrl_c_need_not_wait_for_sentencepiece(tmp_path):
    """Which needs a quarter of a minute or more for a line of 400,000 characters."""
    draw = random.Random(1)
    (tmp_path / "text").write_text("".join(draw.choices("abcdefghijklmnop ", k=400_000)) + "\n")
    command = [sys.executable, "-c", SPM_TRAINING, str(tmp_path / "text")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "started\n"
        time.sleep(1)  # it is in the library by then
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=8)
        finally:
            process.kill()
    assert "KeyboardInterrupt" in errors
    assert [path.name for path in tmp_path.iterdir()] == ["text"]

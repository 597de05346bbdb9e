"""Text in TensorFlow operations: the tokens, ids and lines that the segmenters give."""

import random

import pytest
import tensorflow as tf
from helpers import small_models

from tfmann.data import subword, subword_learning
from tfmann.data.text_encoder import LanguagePair, TextEncoder
from tfmann.data.vocab import EOS_ID, UNK_ID, Vocabulary
from tfmann.decoding.text_processor import TextProcessor
from tfmann.decoding.unk_replacement import replace_unknown
from tfmann.export import graph_segmentation
from tfmann.export.graph_text import SourceText, TargetText

# what separates words, what only looks as if it did, what subword-nmt and regular expressions
# write, characters of one to four bytes, some that are no characters
PARTS = [
    *"abcxyxyxy@<>/w. \t", "  ", "\r", "\n", "\x0b", "\x0c", "\x85", "\u00a0", "\u2028", "\u3000",
    "@@", "@@ ", "</w>", "$", "\\1", "(?s)", "\0", "\x7f", "é", "e\u0301", "ß", "İ", "中", "。",
    "שלום", "مرحبا", "\u202e", "😀", "\U0010ffff", "\ufeff", "\ufffd", "\ufffe", "\uffff", "\ue000",
]  # fmt: skip


def draw_lines(count=300, seed=1, longest=25):
    draw = random.Random(seed)
    lines = ["".join(draw.choices(PARTS, k=draw.randint(0, longest))) for _ in range(count)]
    return ["", " ", "\t \r", "@@", "a@@ b", *lines, "xy" * 60, "x" * 41]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("text")
    lines = [" ".join(line.split()) for line in draw_lines(seed=2)]
    (root / "text").write_text("\n".join(line for line in lines if line), encoding="utf-8")
    subword_learning.learn_bpe([root / "text"], root / "learned", num_merges=50)
    # merges that overlap, that come twice, that join what ends a word, in an order of their own
    merges = [f"{a} {b}" for a in ("x", "y", "xx", "yx") for b in ("x", "y", "xx", "y</w>", "a")]
    merges += ["x </w>", "y </w>", "xy </w>", "x x", "< /", "</ w>"]
    random.Random(4).shuffle(merges)
    for name, head in (("old", ""), ("new", "#version: 0.2\n")):
        (root / name).write_text(head + "\n".join(merges) + "\n", encoding="utf-8")
    subword_learning.train_sentencepiece([root / "text"], root / "pieces", vocab_size=95)
    return root


def segmenter(folder, kind):
    if kind == "words":
        return subword.WordSegmenter()
    if kind == "pieces":
        return subword.SentencePieceSegmenter(folder / "pieces.model")
    return subword.BpeSegmenter(None if kind == "no codes" else folder / kind)


def compile_function(run, *specs):
    """Compiled, as in an export; tokens come back as lists of text."""
    compiled = tf.function(run, autograph=False, input_signature=specs)

    def call(*values):
        tokens = compiled(*values)
        if isinstance(tokens, tf.RaggedTensor):
            return [[token.decode("utf-8") for token in row] for row in tokens.to_list()]
        return [line.decode("utf-8") for line in tokens.numpy()]

    return call


LINES = tf.TensorSpec([None], tf.string)
TOKENS = tf.RaggedTensorSpec([None, None], tf.string)
KINDS = ["words", "no codes", "learned", "old", "new", "pieces"]


def test_a_line_break_among_the_bytes_of_a_model_is_a_space(folder):
    sentencepiece = pytest.importorskip("sentencepiece")
    prefix = str(folder / "bytes")
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text"), model_prefix=prefix, vocab_size=400, byte_fallback=True,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    expected = subword.SentencePieceSegmenter(f"{prefix}.model")
    tokens = ["a", "<0x0A>", "b", "<0x0D>", "c"]
    join = compile_function(graph_segmentation.graph_segmenter(expected).join, TOKENS)
    assert join(tf.ragged.constant([tokens])) == [expected.join(tokens)] == ["a b c"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_tokens_and_the_same_text(folder, kind):
    expected, lines = segmenter(folder, kind), draw_lines()
    actual = graph_segmentation.graph_segmenter(expected)
    tokens = [expected.segment(line) for line in lines]
    segment = compile_function(actual.segment, LINES)
    assert segment(tf.constant(lines)) == tokens
    assert segment(tf.constant([], tf.string)) == []
    assert segment(tf.constant([" ", ""])) == [[], []]
    as_words = [subword.WordSegmenter().segment(line) for line in lines]
    assert (tokens == as_words) == (kind in ("words", "no codes"))
    join = compile_function(actual.join, TOKENS)
    # tokens of other lines' ends too: a text that ends within a word
    cut = [row[: len(row) // 2] for row in tokens]
    rows = tf.ragged.constant(tokens + cut, dtype=tf.string, ragged_rank=1)
    assert join(rows) == [expected.join(row) for row in tokens + cut]


@pytest.mark.parametrize("kind", ["words", "new", "pieces"])
def test_a_line_of_white_space_alone_is_blank(folder, kind):
    spaces = [character for character in map(chr, range(0x110000)) if character.isspace()]
    others = ["\0", "\x1b", "\u180e", "\u200b", "\u2060", "\ufeff", "\ufffd"]
    texts = [*spaces, "".join(spaces), "", *others, "\u3000a", "a\x1f", "\u00a0\ufeff\u2028"]
    side = TextEncoder(Vocabulary.from_tokens(["a", "\u00a0", "\u3000"]), segmenter(folder, kind))
    hparams = small_models.hparams()
    processor = TextProcessor(LanguagePair(side, side), hparams, None)
    text = SourceText(side, hparams)
    encode = compile_function(lambda lines: text.encode(lines).words, LINES)
    expected = [side.segmenter.segment(line) if line.strip() else [] for line in texts]
    assert encode(tf.constant(texts)) == expected
    encoded = text.encode(tf.constant(texts))
    assert encoded.blank.numpy().tolist() == [not processor.source_ids(line) for line in texts]
    assert encoded.blank.numpy()[: len(spaces) + 2].all() and not encoded.blank.numpy().all()


def test_overlapping_pairs_are_merged_from_the_left(folder):
    """By hand: `x x` before `xx x`, three in a row."""
    (folder / "hand").write_text("#version: 0.2\nx x\nxx x\n")
    segment = compile_function(
        graph_segmentation.graph_segmenter(subword.BpeSegmenter(folder / "hand")).segment, LINES
    )
    assert segment(tf.constant(["xxxx xxx xx x", "xxxxxx"])) == [
        ["xxx@@", "x", "xx@@", "x", "x@@", "x", "x"],
        ["xx@@", "xxx@@", "x"],
    ]


@pytest.mark.parametrize("cap", [0, 3])
@pytest.mark.parametrize("append", [True, False])
def test_the_same_ids(cap, append):
    side = TextEncoder(Vocabulary.from_tokens(["a", "b", "中", "\u00a0"]), subword.WordSegmenter())
    hparams = small_models.hparams(src_max_len_infer=cap, append_source_eos=append)
    lines = ["a b 中", "", "</s> <s> <unk> a", "\u00a0 b a a b other", " ", "\ufeffa b", "a\x0bb"]
    encoded = SourceText(side, hparams).encode(tf.constant(lines))
    for row, line in enumerate(lines):
        ids = side.encode(line)[: cap or None]
        assert bool(encoded.blank[row]) == (not ids)
        length = int(encoded.length[row])
        assert length == max(1, len(ids) + append)
        actual = encoded.ids[row].numpy().tolist()
        assert actual[: len(ids)] == ids and set(actual[len(ids) :]) <= {EOS_ID}
        tokens = [token.decode() for token in encoded.tokens[row].numpy()]
        expected = side.vocabulary.decode(ids) + ["</s>"] * append if ids else []
        assert tokens[: len(expected)] == expected and set(tokens[len(expected) :]) <= {""}
    assert encoded.ids.shape[1] == max(encoded.length.numpy())


@pytest.mark.parametrize("lexicon", [{}, {"w1": "one", "w3": "three"}])
def test_the_same_replacements(lexicon):
    """Of ties the first, of `</s>` nothing, of no weight at all nothing."""
    draw = random.Random(5)
    side = TextEncoder(Vocabulary.from_tokens(["b", "c"]), subword.WordSegmenter())
    lines = ["w1 w2 w3", "", "w4", "w3 w3 w1 w2 w5"]
    encoded = SourceText(side, small_models.hparams()).encode(tf.constant(lines))
    steps, width = 6, encoded.ids.shape[1]
    weights = [
        [[[draw.choice([0.0, 0.0, 0.25, 0.5]) for _ in range(width)] for _ in range(steps)]] * 2
        for _ in lines
    ]
    ids = [
        [[draw.choice([UNK_ID, UNK_ID, 3, 4]) for _ in range(steps)] for _ in range(2)]
        for _ in lines
    ]
    real = tf.sequence_mask([[6, 4], [0, 0], [3, 5], [6, 1]], steps)
    texts = (
        TargetText(side, lexicon)
        .text(tf.constant(ids), real, encoded, tf.constant(weights))
        .numpy()
    )
    remaining = replaced = 0
    for row, line in enumerate(lines):
        words = line.split()
        for rank in range(2):
            count = int(tf.reduce_sum(tf.cast(real[row, rank], tf.int32)))
            tokens = side.vocabulary.decode(ids[row][rank][:count])
            attention = tf.constant(weights[row][rank]).numpy()
            expected = replace_unknown(tokens, attention, words, lexicon)
            assert texts[row, rank].decode() == " ".join(expected)
            remaining += expected.count("<unk>")
            replaced += tokens.count("<unk>") - expected.count("<unk>")
    assert remaining and replaced
    plain = TargetText(side, None).text(tf.constant(ids), real, encoded, None).numpy()
    assert any(b"<unk>" in text for text in plain[0])

"""Exported models: plain TensorFlow gives the results of the command line."""

import json
import random
import re

import numpy as np
import pytest
import tensorflow as tf
from helpers import exports
from helpers.command_line import LINES, ROOT, WORDS, command, fails, tree, write_model

from tfmann import nmt
from tfmann.data import subword_learning, text_files
from tfmann.data.subword import make_segmenter, sentencepiece_vocabulary
from tfmann.data.vocab import EOS_ID
from tfmann.errors import UserError
from tfmann.export import export_folder
from tfmann.export.document_state import SourceState
from tfmann.export.graph_text import EncodedLines
from tfmann.training import checkpoint


def answer_lines(folder, lines):
    signatures = tf.saved_model.load(str(folder)).signatures
    answer = signatures["serving_default"](lines=tf.constant(lines))
    return {name: value.numpy() for name, value in answer.items()}


def interleave(first, second, third):
    """Three documents side by side: the next line of each."""
    return [list(row) for row in zip(first, second, third)]


# Lines of three documents, blank ones among them.
COLUMNS = [exports.draw_lines(9, seed=seed)[1:] for seed in (2, 3, 4)]
IN_ORDER = [line for column in COLUMNS for line in column]


def by_documents(answers):
    """Answers of three documents side by side, a batch a line, in the order of the documents."""
    rows = [(step, row) for row in range(3) for step in range(len(answers))]
    ordered = {}
    for name in answers[0]:
        if not name.startswith("kept_"):
            ordered[name] = [answers[step][name][row] for step, row in rows]
    ordered["scores"] = np.array(ordered["scores"])
    return ordered


def documents_by_command(model, folder, flags):
    ids = [number for number, column in enumerate(COLUMNS) for _ in column]
    return exports.translate_by_command(model, IN_ORDER, folder, flags, ids)


@pytest.fixture(scope="module")
def piece_model(tmp_path_factory):
    """A SentencePiece model, and a translation model of its pieces."""
    folder = tmp_path_factory.mktemp("pieces")
    draw = random.Random(1)
    text_files.write_lines(
        folder / "text", [" ".join(draw.choices(WORDS, k=6)) for _ in range(200)]
    )
    pieces = subword_learning.train_sentencepiece([folder / "text"], folder / "text", vocab_size=32)
    words = sentencepiece_vocabulary(pieces).tokens
    return write_model(folder, words=words, subword_option="spm", subword_model=pieces)


@pytest.fixture(scope="module")
def answered_elsewhere(tmp_path_factory, piece_model):
    """Runs a program without tfmann: lines, pieces, documents, the code of docs/serving.md."""
    folder = tmp_path_factory.mktemp("elsewhere")
    lines = exports.draw_lines()
    luong, exported, flags = exports.export(folder, "luong")
    cache, carried, cache_flags = exports.export(folder, "cache")
    batches = [lines, *([line] for line in lines[:3]), lines[3:5], []]
    answers, printed = exports.answer_in_a_process(
        folder,
        [
            (str(exported), "serving_default", batches, []),
            (str(carried), "document", interleave(*COLUMNS), []),
            (
                str(exports.export_model(piece_model)),
                "serving_default",
                [lines],
                ["tensorflow_text"],
            ),
        ],
        examples().replace("runs/mine/export", str(carried)),
    )
    expected = [
        exports.translate_by_command(luong, lines, folder, flags),
        documents_by_command(cache, folder, cache_flags),
        exports.translate_by_command(piece_model, lines, folder),
    ]
    return answers, expected, printed


def examples():
    """The programs of docs/serving.md."""
    section = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(programs) == 2 and "runs/mine/export" in programs[0]
    return "\n".join(programs)


@pytest.mark.thorough
def test_strings_in_and_out_without_this_program(answered_elsewhere):
    (answers, *_), (expected, *_), _ = answered_elsewhere
    exports.assert_same(answers[0], expected)
    texts = {n_best[0][0] for n_best in expected}
    assert len(texts) > 50, "the model says one thing to everything: it tests no order"
    assert any(len(n_best) == 3 for n_best in expected)


@pytest.mark.thorough
def test_a_batch_of_any_size_says_the_same(answered_elsewhere):
    (answers, *_), _, _ = answered_elsewhere
    together, *apart = answers
    for row, answer in enumerate(apart[:3]):
        assert answer["translations"].tolist() == together["translations"][row : row + 1].tolist()
    assert [len(value) for value in apart[4].values()] == [0] * len(together)
    assert apart[3]["translations"].tolist() == together["translations"][3:5].tolist()


@pytest.mark.thorough
def test_documents_without_this_program(answered_elsewhere):
    (_, answers, _), (_, expected, _), _ = answered_elsewhere
    exports.assert_same(by_documents(answers), expected)


@pytest.mark.thorough
def test_pieces_without_this_program(answered_elsewhere):
    (*_, answers), (*_, expected), printed = answered_elsewhere
    exports.assert_same(answers[0], expected)
    assert printed[-1] == "True"  # tensorflow_text was there, for this one alone


@pytest.mark.thorough
def test_the_examples_of_the_readme(answered_elsewhere):
    printed = answered_elsewhere[2][:-1]
    assert len(printed) == 4
    assert printed[0] and printed[1] == " 0.0"  # of a blank line


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in exports.FAMILIES if name != "luong"])
def test_every_family_of_cells(name, tmp_path):
    model, folder, flags = exports.export(tmp_path, name)
    lines = exports.draw_lines()
    documents = range(len(lines)) if name in exports.DOCUMENTS else None
    expected = exports.translate_by_command(model, lines, tmp_path, flags, documents)
    exports.assert_same(answer_lines(folder, lines), expected)
    assert len({n_best[0][0] for n_best in expected}) > 3


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in exports.DOCUMENTS if name != "cache"])
def test_what_is_kept_of_documents(name, tmp_path):
    model, folder, flags = exports.export(tmp_path, name)
    signatures = tf.saved_model.load(str(folder)).signatures
    state, answers = signatures["begin"](rows=tf.constant(3)), []
    for lines in interleave(*COLUMNS):
        answer = signatures["document"](lines=tf.constant(lines), **state)
        state = {name: answer[name] for name in state}
        answers.append({name: value.numpy() for name, value in answer.items()})
    expected = documents_by_command(model, tmp_path, flags)
    exports.assert_same(by_documents(answers), expected)
    in_one_pass = exports.translate_by_command(
        model, IN_ORDER, tmp_path, flags, range(len(IN_ORDER))
    )
    assert in_one_pass != expected


def test_the_kept_sentences_are_as_wide_as_the_longest_of_them():
    state, kept = SourceState(2), SourceState(2).empty(tf.constant(2))
    for lines, width in ((["a b c d", "a"], 5), (["a", ""], 5), (["", "a b"], 3), (["", ""], 3)):
        words = tf.strings.split(lines)
        ids = tf.ragged.map_flat_values(lambda flat: tf.fill(tf.shape(flat), 7), words)
        ids = ids.to_tensor(EOS_ID)
        length = tf.cast(words.row_lengths(), tf.int32)
        encoded = EncodedLines(length == 0, words, ids, length + 1, tf.constant(""))
        kept = state.update(kept, encoded, None, None)
        assert kept.ids.shape == (2, 2, width)
    np.testing.assert_array_equal(kept.ids, [[[2, 2, 2]] * 2, [[7, 7, 2], [2, 2, 2]]])
    np.testing.assert_array_equal(kept.length, [[1, 1], [3, 1]])


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["previous", "cache"])
def test_the_next_lines_of_no_document(name, tmp_path):
    signatures = tf.saved_model.load(str(exports.export(tmp_path, name)[1])).signatures
    begin, document = signatures["begin"], signatures["document"]
    answer = document(lines=tf.constant(["der hund"]), **begin(rows=tf.constant(1)))
    state = begin(rows=tf.constant(0))
    for _ in range(2):
        of_none = document(lines=tf.constant([], tf.string), **state)
        assert of_none.keys() == answer.keys()
        for key, value in of_none.items():
            assert value.shape[0] == 0 and value.dtype == answer[key].dtype
        state = {key: of_none[key] for key in state}


@pytest.mark.slow
def test_byte_pairs(tmp_path):
    text_files.write_lines(tmp_path / "text", [" ".join(WORDS)] * 9)
    subword_learning.learn_bpe([tmp_path / "text"], tmp_path / "codes", num_merges=12)
    settings = {"subword_option": "bpe", "subword_model": str(tmp_path / "codes")}
    units = sorted(set(make_segmenter(*settings.values()).segment(" ".join(WORDS))))
    assert any(unit.endswith("@@") for unit in units)
    (tmp_path / "model").mkdir()
    model = write_model(tmp_path / "model", words=units, **settings)
    folder, lines = exports.export_model(model, exports.N_BEST), exports.draw_lines()
    expected = exports.translate_by_command(model, lines, tmp_path, exports.N_BEST)
    exports.assert_same(answer_lines(folder, lines), expected)


@pytest.mark.slow
def test_unknown_words_are_replaced(tmp_path):
    (tmp_path / "model").mkdir()
    model = write_model(tmp_path / "model")
    arrays = checkpoint.read_arrays(str(model / "best_bleu"))
    kernel, often = arrays["model/projection_kernel"], 3 + WORDS.index("chó")
    kernel[:, [0, often]] = kernel[:, [often, 0]]  # so that it often predicts <unk>
    checkpoint.write(str(model / "best_bleu"), arrays, None, {})
    entries = [f"{word} from_lexicon 1" for word in WORDS[::2]]
    text_files.write_lines(model / "lexicon.txt", entries)
    flags, lines = [*exports.N_BEST, "--replace_unk"], exports.draw_lines()
    folder = exports.export_model(model, flags)
    expected = exports.translate_by_command(model, lines, tmp_path, flags)
    words = {word for n_best in expected for text, *_ in n_best for word in text.split()}
    assert {"from_lexicon", *WORDS[1::2]} <= words, "some are looked up, some copied"
    exports.assert_same(answer_lines(folder, lines), expected)


@pytest.mark.parametrize(
    "flags, status, words",
    [
        ({"infer_mode": "sample"}, 2, "infer_mode='sample' draws"),
        ({"export_dir": "{0}/full"}, 1, "full holds other files than an export"),
        ({"export_dir": "{0}/model.json"}, 1, "cannot export to .*: Not a directory"),
        ({"inference_input_file": "{0}/full/note"}, 2, "does not use --inference_input_file"),
        ({"mode": "eval", "export_dir": "{0}/new"}, 2, "does not use --export_dir"),
        ({"out_dir": "{0}"}, 1, "holds no trained model"),
    ],
)
def test_what_cannot_be_exported(model, tmp_path, capsys, flags, status, words):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note").write_text("mine")
    (tmp_path / "model.json").write_text("{}")
    all_flags = {"mode": "export", "out_dir": model, **flags}
    argv = [f"--{name}={str(value).format(tmp_path)}" for name, value in all_flags.items()]
    before = tree(tmp_path, model)
    fails(argv, capsys, status, words)
    assert tree(tmp_path, model) == before


def test_an_earlier_export_is_replaced_when_the_new_one_is_complete(tmp_path):
    target, mine = tmp_path / "place", tmp_path / "place.old"
    target.mkdir()  # an empty folder may be taken
    mine.mkdir()
    (mine / "mine").touch()

    def write(text):
        with export_folder.new_export(str(target)) as folder:
            path = tmp_path / folder / export_folder.FACTS
            path.parent.mkdir()
            path.write_text(json.dumps({"tfmann_export": 1, "text": text}))
            if text is None:
                raise OSError(28, "No space left on device")

    write("one")
    with pytest.raises(UserError, match="cannot export to .*place: No space left"):
        write(None)
    assert json.loads((target / export_folder.FACTS).read_text())["text"] == "one"
    write("two")
    assert json.loads((target / export_folder.FACTS).read_text())["text"] == "two"
    assert {path.name for path in tmp_path.iterdir()} == {"place", "place.old"}
    assert (mine / "mine").exists()


def test_an_export_says_what_it_is(model, capsys):
    assert nmt.main(command(model, mode="export", beam_width=2)) == 0
    stderr = capsys.readouterr().err.splitlines()
    assert stderr[-1] == f"exported to {model}/export: serving_default"
    facts = json.loads((model / "export" / export_folder.FACTS).read_text())
    assert facts["hparams"]["beam_width"] == 2
    assert facts["checkpoint"] == str(model / "best_bleu") and facts["needs"] == ["tensorflow"]
    described = facts["signatures"]["serving_default"]
    assert described["inputs"] == {"lines": {"type": "string", "shape": [None]}}
    actual = answer_lines(model / "export", LINES)
    assert {name: str(value.dtype) for name, value in actual.items()} == {
        name: {"string": "object"}.get(description["type"], description["type"])
        for name, description in described["outputs"].items()
    }
    for name, value in actual.items():
        shape = described["outputs"][name]["shape"]
        assert len(shape) == value.ndim
        assert all(expected in (None, size) for expected, size in zip(shape, value.shape))

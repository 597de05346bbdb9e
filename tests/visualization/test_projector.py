"""The slots of a memory after reading a source, and how TensorBoard's projector finds them."""

from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from helpers import small_models
from tensorboard.plugins.projector import projector_config_pb2

from tfmann.data import text_encoder
from tfmann.data.subword import make_segmenter
from tfmann.data.text_files import iter_lines
from tfmann.data.vocab import Vocabulary
from tfmann.decoding.memory_contents import memory_contents
from tfmann.decoding.text_processor import TextProcessor
from tfmann.layers.dropout import DropoutMasks
from tfmann.visualization import projector
from tfmann.visualization.tensorboard import Board

IDS = [5, 3, 9, 4]
PURE_MANN = {
    "unit_type": "lstm", "encoder_type": "memory", "bridge": "zero", "num_layers": 1,
    "num_memory_locations": 6, "memory_unit_size": 5, "write_heads": 2,
}  # fmt: skip


def read_contents(model):
    vocabulary = Vocabulary.from_tokens(f"w{i}" for i in range(3, small_models.SOURCE_SIZE))
    side = text_encoder.TextEncoder(vocabulary, make_segmenter(""))
    return memory_contents(
        model, TextProcessor(text_encoder.LanguagePair(side, side), model.hparams, None), IDS
    )


@pytest.mark.parametrize("changes", [{}, {"cell": "cache", "cache_size": 4}, {"cell": "summary"}])
def test_annotations_have_their_words(changes):
    model = small_models.model("rnnsearch", **changes)
    contents = read_contents(model)
    assert contents.labels == ["w5", "w3", "w9", "w4", "</s>"]
    ids = tf.constant([[*IDS, 2]])
    expected = model.prepare(ids, tf.constant([5])).encoded.annotations[0]
    np.testing.assert_allclose(contents.vectors, expected, atol=1e-6)


class Slots(NamedTuple):
    """A state whose memory is a tensor."""

    memory: tf.Tensor


@pytest.mark.parametrize("shows", ["write_weights", "read_weights", "nothing"])
def test_a_cell_of_ones_own_need_not_be_like_an_ntm(monkeypatch, shows):
    model = small_models.model("luong", cell="ntm", **PURE_MANN)
    prepare = model.prepare

    def prepare_own(*args, **options):
        prepared = prepare(*args, **options)
        state = Slots(prepared.state.memory.memory) if shows != "nothing" else ()
        shown = {k: value for k, value in prepared.diagnostics.items() if k == shows}
        return prepared._replace(state=state, diagnostics=shown)

    expected = read_contents(model)
    monkeypatch.setattr(model, "prepare", prepare_own)
    contents = read_contents(model)
    if shows == "nothing":
        assert contents is None
        return
    np.testing.assert_array_equal(contents.vectors, expected.vectors)
    named = shows == "write_weights"
    assert contents.labels == (expected.labels if named else [str(slot) for slot in range(6)])


@pytest.mark.parametrize("cell", ["ntm", "dnc"])
def test_slots_have_the_word_at_which_they_were_written_most(cell):
    model = small_models.model("luong", cell=cell, **PURE_MANN)
    contents = read_contents(model)
    words = tf.gather(model.source_embedding, [*IDS, 2])[:, None]
    start = model.prepare(tf.constant([[3]]), tf.constant([1]))
    state, weights = model.cell.initial_state(start.encoded), []
    for inputs in model.cell.prepare_inputs(words, DropoutMasks.none()):
        out = model.cell.step(inputs, state, start.source)
        state = out.state
        weights.append(out.diagnostics["write_weights"][0].numpy().max(axis=0))
    np.testing.assert_allclose(contents.vectors, state.memory.memory[0], atol=1e-5)
    tokens = ["w5", "w3", "w9", "w4", "</s>"]
    most = np.array(weights).argmax(axis=0)
    assert contents.labels == [f"{slot}: {tokens[step]}" for slot, step in enumerate(most)]


def test_the_projector_finds_what_is_written(tmp_path):
    board = Board(str(tmp_path))
    vectors = np.arange(6.0).reshape(3, 2) / 7
    board.contents(3, ["a", "tab\there", ""], vectors)
    board.contents(0, ["b"], vectors[:1])
    board.contents(3, ["c", "d"], vectors[1:])  # a later evaluation
    board.close()
    config = projector_config_pb2.ProjectorConfig()
    text_format.Parse((tmp_path / projector.CONFIG).read_text(), config)
    assert [embedding.tensor_name[-1] for embedding in config.embeddings] == ["0", "3"]
    for embedding, labels, expected in zip(
        config.embeddings, (["b"], ["c", "d"]), (vectors[:1], vectors[1:])
    ):
        assert list(iter_lines(tmp_path / embedding.metadata_path)) == labels
        rows = [line.split("\t") for line in iter_lines(tmp_path / embedding.tensor_path)]
        np.testing.assert_allclose(np.array(rows, float), expected, atol=1e-6)


def test_labels_are_one_to_a_line(tmp_path):
    projector.write(str(tmp_path), 1, ["a\tb", "c\nd", ""], np.zeros([3, 2]))
    lines = list(iter_lines(tmp_path / "memory_1_labels.tsv"))
    assert len(lines) == 3 and all(lines) and not any("\t" in line for line in lines)


def test_a_folder_that_takes_nothing_ends_no_run(tmp_path):
    board = Board(str(tmp_path))
    (tmp_path / "memory_0.tsv").mkdir()  # no file can take its place
    board.contents(0, ["a"], np.zeros([1, 2]))
    board.close()

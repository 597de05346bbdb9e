"""Traces of a cell: names, shapes, the token of each step, the head of each figure."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.memory_cells import SIZES, VARIANTS, build

from tfmann.api import Model
from tfmann.cells.diagnostics import EVERYTHING, SHAPES, VECTORS
from tfmann.data.subword import WordSegmenter
from tfmann.data.text_encoder import LanguagePair, TextEncoder
from tfmann.data.vocab import EOS_ID, SOS_ID, Vocabulary
from tfmann.decoding.translator import Translator
from tfmann.errors import UserError
from tfmann.layers.dropout import DropoutMasks

PAIR = ("a3 a9 a14 a5", "b5 b6")
NTM = {"interpolation_gate", "shift_kernel", "sharpening"}
DNC = {
    "usage", "allocation_weights", "allocation_gate", "write_gate", "free_gate", "read_modes",
    "precedence", "link",
}  # fmt: skip
MSD = {"read_mask", "write_mask", "backward_sharpness", "forward_sharpness"}
HEADS = {"read_weights", "write_weights", "content_weights", "erase_norm", "add_norm"}
CELLS = {
    "ntm": ("ntm", (1, 1), "memory", {}),
    "ntm-heads": ("ntm", (2, 3), "memory", {"shift_range": 2}),
    "dnc": ("dnc", (1, 1), "memory", {}),
    "dnc-heads": ("dnc", (3, 2), "memory", {}),
    "ntm-encoder": ("ntm", (1, 2), "bi", {}),
    "mad": ("mad", (2, 1), "bi", {}),
    "mad-dnc": ("mad", (1, 2), "bi", {"external_addressing": "dnc"}),
    "dnc-msd": ("dnc", (2, 1), "memory", VARIANTS["dnc-msd"][1]),
}


def languages():
    words = ([f"{letter}{i}" for i in range(3, size)] for letter, size in
             (("a", small_models.SOURCE_SIZE), ("b", small_models.TARGET_SIZE)))  # fmt: skip
    return LanguagePair(
        *(TextEncoder(Vocabulary.from_tokens(side), WordSegmenter()) for side in words)
    )


def translator(name):
    cell, heads, encoder_type, changes = CELLS[name]
    model = build(cell, heads, encoder_type, **changes)
    return Translator(model, languages(), model.hparams)


def call_word_by_word(model, source, target, steps_of_source):
    """Diagnostics of each step, by calling the cell word by word: ids in, lists by name out."""
    prepared = model.prepare(tf.constant([source]), tf.constant([len(source)]))
    state, memory = prepared.state, prepared.source
    embedded = [model.embed_target(tf.constant([i])) for i in [SOS_ID, *target[:-1]]]
    if steps_of_source:
        state = model.cell.initial_state(prepared.encoded)
        embedded = [tf.gather(model.source_embedding, [i]) for i in source] + embedded
    rows = []
    for words in embedded:
        inputs = model.cell.prepare_inputs(words, DropoutMasks.none())
        out = model.cell.step(inputs, state, memory)
        state = out.state
        rows.append({key: value[0].numpy() for key, value in out.diagnostics.items()})
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


@pytest.mark.parametrize("name", list(CELLS))
def test_every_quantity_of_the_cell_in_its_documented_shape(untraced, name):
    cell, (r, h), encoder_type, changes = CELLS[name]
    model = Model(translator(name), "nowhere")
    trace = model.trace(PAIR)
    source, tokens = [*PAIR[0].split(), "</s>"], [*PAIR[1].split(), "</s>"]
    assert (trace.source_tokens, trace.tokens) == (source, tokens) == model.tokens(PAIR)
    if encoder_type == "memory":
        assert trace.boundary == len(source) and trace.step_tokens == source + tokens
    else:
        assert trace.boundary == 0 and trace.step_tokens == tokens
    addressed_as_dnc = "dnc" in (cell, changes.get("external_addressing"))
    expected = HEADS | (DNC if addressed_as_dnc else NTM) | ({"alignments"} & {*trace})
    expected |= MSD if name == "dnc-msd" else set()
    assert set(trace) == expected
    assert ("alignments" in trace) == (cell == "mad")
    sizes = {
        "S": len(source), "R": r, "H": h, "R+H": r + h, "N": SIZES["num_memory_locations"],
        "W": SIZES["memory_unit_size"],
        "J": 2 * changes.get("shift_range", 1) + 1, "1": 1, "1+2H": 1 + 2 * h,
    }  # fmt: skip
    for key, value in trace.items():
        shape = tuple(sizes[letter] for letter in SHAPES[key])
        assert value.shape == (len(trace.step_tokens), *shape), key
        assert np.all(np.isfinite(value)), key


@pytest.mark.parametrize("name", list(CELLS))
def test_addresses_are_distributions(untraced, name):
    trace = Model(translator(name), "nowhere").trace(PAIR)
    for key in ("read_weights", "write_weights", "content_weights"):
        total = trace[key].sum(axis=-1)
        assert np.all(trace[key] >= 0)
        if "usage" in trace and key != "content_weights":
            assert np.all(total <= 1 + 1e-5)
        else:
            np.testing.assert_allclose(total, 1.0, atol=1e-5)


@pytest.mark.parametrize("name", list(CELLS))
def test_a_trace_is_what_the_cell_says_word_by_word(untraced, name):
    system = translator(name)
    trace = Model(system, "nowhere").trace(PAIR)
    source = [*system.languages.source.encode(PAIR[0]), EOS_ID]
    target = [*system.languages.target.encode(PAIR[1]), EOS_ID]
    expected = call_word_by_word(system.model, source, target, trace.boundary)
    assert set(expected) == set(trace)
    for key, value in expected.items():
        np.testing.assert_allclose(trace[key], value, atol=1e-5, err_msg=key)


def test_compiled_it_is_the_same():
    system = translator("ntm-heads")
    trace = Model(system, "nowhere").trace(PAIR)
    source = [*system.languages.source.encode(PAIR[0]), EOS_ID]
    target = [*system.languages.target.encode(PAIR[1]), EOS_ID]
    expected = call_word_by_word(system.model, source, target, trace.boundary)
    assert set(expected) == set(trace) and trace.boundary == len(source) == 5
    for key, value in expected.items():
        np.testing.assert_allclose(trace[key], value, atol=1e-5, err_msg=key)


def test_each_head_has_what_is_its_own(untraced):
    trace = Model(translator("ntm-heads"), "nowhere").trace(PAIR)
    assert list(trace.heads) == [
        "read_head_0", "read_head_1", "write_head_0", "write_head_1", "write_head_2",
    ]  # fmt: skip
    read, write = trace.heads["read_head_1"], trace.heads["write_head_2"]
    assert set(read) == {"weights", "content_weights", *NTM}
    assert set(write) == {*read, "erase_norm", "add_norm"}
    assert np.array_equal(read["weights"], trace["read_weights"][:, 1])
    assert np.array_equal(write["weights"], trace["write_weights"][:, 2])
    assert np.array_equal(read["shift_kernel"], trace["shift_kernel"][:, 1])
    assert np.array_equal(write["shift_kernel"], trace["shift_kernel"][:, 2 + 2])
    assert np.array_equal(write["add_norm"], trace["add_norm"][:, 2])
    trace = Model(translator("dnc-heads"), "nowhere").trace(PAIR)
    read, write = trace.heads["read_head_2"], trace.heads["write_head_1"]
    assert set(read) == {"weights", "content_weights", "free_gate", "read_modes"}
    assert set(write) == {
        "weights", "content_weights", "allocation_weights", "allocation_gate", "write_gate",
        "precedence", "erase_norm", "add_norm",
    }  # fmt: skip
    assert np.array_equal(write["content_weights"], trace["content_weights"][:, 3 + 1])
    assert np.array_equal(read["read_modes"], trace["read_modes"][:, 2])
    model = small_models.model("luong")
    without = Model(Translator(model, languages(), model.hparams), "nowhere").trace(PAIR)
    assert without.heads == {} and set(without) == {"alignments"}


def test_matrices_are_recorded_on_request_only(untraced):
    system = translator("dnc")
    (all_of_it,), (vectors,) = (system.force([PAIR], record) for record in (EVERYTHING, VECTORS))
    assert set(all_of_it.diagnostics) - set(vectors.diagnostics) == {"link"}
    assert vectors.source_steps == 5
    (nothing,) = system.force([PAIR])
    assert nothing.diagnostics == {} and nothing.source_steps == 0
    with pytest.raises(UserError, match="shows no alignments; it has .*read_weights"):
        system.force([PAIR], ("alignments",))


def test_both_phases_are_cut_at_each_sentence_of_a_batch(untraced):
    system = translator("ntm")
    pairs = [PAIR, ("a3", "b4 b4 b4 b4"), ("", "b9"), ("a5 a6 a7 a8 a9 a10", "")]
    for pair, forced in zip(pairs, system.force(pairs, ("write_weights", "sharpening"))):
        (single,) = system.force([pair], EVERYTHING)
        assert forced.source_steps == single.source_steps == len(pair[0].split()) + 1
        assert set(forced.diagnostics) == {"write_weights", "sharpening"}
        for key, value in forced.diagnostics.items():
            np.testing.assert_allclose(value, single.diagnostics[key], atol=1e-5, err_msg=key)


@pytest.mark.parametrize("name", ["ntm", "mad"])
def test_a_translation_is_forced_again_token_by_token(untraced, name):
    system = translator(name)
    lines = ["a3 a9 a14", "a5 nowhere", "a17 a20 a3 a3"]
    translations = [n_best[0] for n_best in system.translate(lines)]
    for translation, forced in zip(translations, system.force_translations(translations, VECTORS)):
        assert forced.tokens == translation.tokens
        assert forced.source_tokens == translation.source_tokens
        assert forced.log_prob == pytest.approx(translation.score, rel=1e-4, abs=1e-4)

"""tfa.seq2seq's loop and the plain one: the same results of every way to decode."""

import builtins

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.searches import SIGNATURE

from tfmann.decoding import backend, search
from tfmann.decoding.beam import BeamOptions
from tfmann.decoding.restrictions import Restrictions
from tfmann.decoding.sampling import SamplingOptions
from tfmann.decoding.searcher import Searcher
from tfmann.decoding.teacher_forcing import forced_log_probs
from tfmann.errors import UserError
from tfmann.models.seq2seq import Seq2Seq

LENGTHS = [(5, 4), (0, 1), (2, 6), (7, 3)]  # the second sentence is a blank line
CELLS = ["luong", "kvmematt-1", "key-value-iw", "transformer-rewriting"]
OPTIONS = search.SearchOptions(max_length=6, with_alignments=True)
BEAMS = {
    "penalties": (BeamOptions(3, 0.8, 0.3, 2), OPTIONS),
    "restrictions": (
        BeamOptions(3, 0.6, 0.0, 1),
        OPTIONS._replace(restrictions=Restrictions(2, 2)),
    ),
}
pytestmark = pytest.mark.skipif(
    backend.addons_or_none() is None, reason="tensorflow_addons cannot be imported"
)


def models(variant):
    """The same weights behind both backends, large enough to end sentences at many lengths."""
    sizes = {"init_weight": 1.0, "embedding_init_weight": 3.0}
    for name in ("tfa", "plain"):
        h = small_models.hparams(variant, decoder_backend=name, **sizes)
        model = Seq2Seq(h, small_models.SOURCE_SIZE, small_models.TARGET_SIZE)
        yield model


def run_backends(variant, function):
    """Returns the result of a traced function of a model and its source for each backend."""
    batch, results = small_models.batch(LENGTHS), []

    for model in models(variant):

        @tf.function(autograph=False, input_signature=SIGNATURE)
        def run(source, length, model=model):
            return function(model, model.prepare(source, length), batch)

        outputs = run(tf.constant(batch.source), tf.constant(batch.source_length))
        results.append([value.numpy() for value in tf.nest.flatten(outputs) if value is not None])
    return results


def assert_same(results):
    ours, plain = results
    assert len(ours) == len(plain) > 0
    for expected, actual in zip(ours, plain):
        assert actual.shape == expected.shape and actual.dtype == expected.dtype
        if np.issubdtype(expected.dtype, np.integer):
            np.testing.assert_array_equal(actual, expected)
        else:
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.quick("luong")
@pytest.mark.parametrize("variant", CELLS)
def test_forced_decoding_and_its_gradients(variant):
    def scored(model, prepared, batch):
        words = [tf.constant(a) for a in (batch.target_in, batch.target_out, batch.target_length)]
        with tf.GradientTape() as tape:
            prepared_on_tape = model.prepare(
                tf.constant(batch.source), tf.constant(batch.source_length)
            )
            log_probs, diagnostics, _ = forced_log_probs(
                model, prepared_on_tape, *words, ("alignments",)
            )
            total = tf.reduce_sum(log_probs)
        gradients = tape.gradient(total, model.trainable_variables)
        return log_probs, diagnostics, [tf.convert_to_tensor(g) for g in gradients if g is not None]

    assert_same(run_backends(variant, scored))


@pytest.mark.quick("luong")
@pytest.mark.parametrize("variant", CELLS)
def test_greedy_search_and_sampling(variant):
    def chosen(model, prepared, batch):
        sampled = search.sample(model, prepared, SamplingOptions(1.0), tf.constant([3, 4]), OPTIONS)
        return search.greedy(model, prepared, OPTIONS), sampled

    assert_same(run_backends(variant, chosen))


@pytest.mark.quick("luong-penalties", "kvmematt-1-restrictions")
@pytest.mark.parametrize("options", BEAMS)
@pytest.mark.parametrize("variant", CELLS)
def test_beam_search(variant, options):
    def searched(model, prepared, batch):
        return search.beam_search(model, prepared, *BEAMS[options])

    assert_same(run_backends(variant, searched))


def test_without_addons_auto_is_plain_and_tfa_is_refused(monkeypatch):
    imported = builtins.__import__

    def without(name, *rest):
        names = rest[2] if len(rest) > 2 else ()
        if name.startswith("tensorflow_addons") or "addons" in (names or ()):
            raise ImportError(name)
        return imported(name, *rest)

    model = small_models.model("luong")
    batch = small_models.batch(LENGTHS)
    prepared = model.prepare(tf.constant(batch.source), tf.constant(batch.source_length))
    expected = search.greedy(model, prepared, OPTIONS)
    monkeypatch.setattr(builtins, "__import__", without)
    backend.addons_or_none.cache_clear()
    try:
        actual = search.greedy(model, prepared, OPTIONS)
        np.testing.assert_array_equal(actual.ids, expected.ids)
        refused = next(models("luong"))
        with pytest.raises(UserError, match="decoder_backend=tfa needs tensorflow-addons 0.23"):
            search.greedy(refused, prepared, OPTIONS)
    finally:
        monkeypatch.undo()
        backend.addons_or_none.cache_clear()
    assert backend.addons_or_none() is not None


@pytest.mark.parametrize("mode", ["greedy", "beam_search", "sample"])
def test_the_settings_of_a_search_choose_its_backend(mode, monkeypatch):
    model = next(models("luong"))
    batch, used = small_models.batch(LENGTHS), set()
    decode = backend.loop.decode

    def counted(*arguments):
        used.add("plain")
        return decode(*arguments)

    monkeypatch.setattr(backend.loop, "decode", counted)
    source = tf.constant(batch.source), tf.constant(batch.source_length)
    for name, expected in (("tfa", set()), ("plain", {"plain"})):
        h = model.hparams.replace(decoder_backend=name, infer_mode=mode, beam_width=2)
        Searcher(model, h).search(*source, (), with_attention=False)
        assert used == expected

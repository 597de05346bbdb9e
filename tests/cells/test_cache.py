"""RNNSearch with a continuous cache: whole documents against the oracle, and searches."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.cache_models import (
    FUSIONS,
    LENGTHS,
    D,
    U,
    loss_of,
    model_of,
    prepare,
    random_caches,
    settings,
    weights_of,
)
from helpers.parameter_counts import count_parameters
from helpers.searches import EOS, SOS, large_model
from oracles import cache as oracle

from tfmann.config import HParams
from tfmann.decoding import search
from tfmann.decoding.beam import BeamOptions
from tfmann.decoding.teacher_forcing import forced_log_probs, teacher_forced
from tfmann.memory import continuous_cache
from tfmann.training import named_variables
from tfmann.training.objective import sum_loss

LIMIT = 6


# --- what the tests are made of ----------------------------------------------------------


def decode(model, batch, document=(), record=()):
    """`ForcedOutputs`, and the logits `[T, B, V]`."""
    forced = teacher_forced(
        model, prepare(model, batch, document), tf.constant(batch.target_in),
        tf.constant(batch.target_length), record=record,
    )  # fmt: skip
    steps, count = forced.outputs.shape[:2]
    flat = (tf.reshape(v, [steps * count, -1]) for v in (forced.outputs, forced.embedded[:steps]))
    logits = model.projection()(model.readout(*flat))
    return forced, tf.reshape(logits, [steps, count, -1])


# --- teacher-forced decoding -------------------------------------------------------------


VARIANTS = [
    *itertools.product(FUSIONS, (True, False), ["dot"]),
    *itertools.product(FUSIONS, [True], ["scaled_dot", "cosine", "projected", "uniform"]),
    ("deep", True, "nothing"),
]


@pytest.mark.quick("deep-True-dot", "shallow-False-dot", "deep-True-projected")
@pytest.mark.parametrize("fusion,overwrite,matching", VARIANTS)
def test_documents_equal_the_oracle(fusion, overwrite, matching):
    model = model_of(fusion, cache_overwrite=overwrite, cache_matching=matching)
    if matching == "projected":  # it begins as the identity, that is as "dot"
        kernel = model.cell.document_memory.key_kernel
        assert np.array_equal(kernel, np.eye(D))
        kernel.assign(np.random.default_rng(4).normal(size=[D, D]))
    batches = [small_models.batch(LENGTHS, seed) for seed in range(3)]
    for batch in batches:  # words that come again, so that slots are found again
        batch.target_out[:] = np.where(batch.target_out > 2, 3 + batch.target_out % 4, 2)
        batch.target_in[:, 1:] = batch.target_out[:, :-1]

    @tf.function(autograph=False)
    def run(source, source_length, target_in, target_out, length, cache):
        prepared = model.prepare(source, source_length, document=cache)
        log_probs, diagnostics, raw = forced_log_probs(
            model, prepared, target_in, target_out, length, ("cache_match", "cache_gate")
        )
        written = model.cell.document_memory.entries(tf.transpose(raw, [1, 0, 2]))
        after = continuous_cache.write(cache, *written, target_out, length, overwrite)
        return prepared.encoded.annotations, log_probs, diagnostics, written, after

    cache, results = continuous_cache.empty(len(LENGTHS), 3, D, U), []
    for batch in batches:
        results.append(run(*map(tf.constant, batch[:5]), cache))
        cache = results[-1][-1]
    for row in range(len(LENGTHS)):
        document = []
        for batch, (annotations, *_) in zip(batches, results):
            steps, length = batch.target_length[row], batch.source_length[row]
            words = model.embed_target(tf.constant(batch.target_in[row, :steps])).numpy()
            real_annotations = annotations[row, :length].numpy()
            document.append(oracle.Sentence(real_annotations, words, batch.target_out[row, :steps]))
        expected = oracle.decode_document(
            weights_of(model), document, 3, fusion, overwrite, matching
        )
        assert expected[2]["gates"].min() > 0 and np.ptp(expected[2]["gates"]) > 0.01
        for sentence, decoded, result in zip(document, expected, results):
            assert_sentence(sentence, decoded, result, row)


def assert_sentence(sentence, expected, result, row):
    _, log_probs, diagnostics, (contexts, states), after = result
    steps, words = len(sentence.target_words), sentence.target_words
    for ours, name in (
        (contexts[row, :steps], "contexts"),
        (states[row, :steps], "states"),
        (diagnostics["cache_match"][row, :steps], "match"),
        (after.keys[row], "keys"),
        (after.values[row], "values"),
    ):
        theirs = expected[name] if name in expected else getattr(expected["cache"], name)
        np.testing.assert_allclose(ours, theirs, atol=1e-5, err_msg=name)
    gates = diagnostics["cache_gate"][row, :steps, 0]
    np.testing.assert_allclose(gates, expected["gates"].mean(axis=1), atol=1e-5)
    np.testing.assert_array_equal(after.words[row], expected["cache"].words)
    chosen = np.log(expected["probabilities"][np.arange(steps), words])
    np.testing.assert_allclose(log_probs[row, :steps], chosen, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("slots", [0, 3])
@pytest.mark.parametrize("fusion", FUSIONS)
def test_with_an_empty_cache_it_is_rnnsearch_to_the_last_bit(fusion, slots):
    model, baseline = model_of(fusion, cache_size=slots), small_models.model("rnnsearch")
    arrays = {v.name.split(":")[0]: v.numpy() for v in baseline.trainable_variables}
    variables = model.trainable_variables
    _, fresh = named_variables.assign_matching(variables, arrays, "there", model.cell.ancestor)
    assert {name.rsplit("/", 1)[1] for name in fresh} == {
        "gate_state_kernel", "gate_context_kernel", "gate_retrieved_kernel",
    }  # fmt: skip
    batch = small_models.batch(LENGTHS)
    _, baseline_logits = decode(baseline, batch)
    for document in ((), continuous_cache.empty(len(LENGTHS), slots, D, U)):
        actual, logits = decode(model, batch, document, ("cache_match", "cache_gate"))
        np.testing.assert_array_equal(logits, baseline_logits)
        assert not any(value.numpy().any() for value in actual.diagnostics.values())
    expected = sum_loss(baseline, batch[:5], None, tf.float32).total
    np.testing.assert_allclose(loss_of(model, batch), expected, rtol=1e-6)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_only_requested_records_are_made(fusion):
    model, batch = model_of(fusion), small_models.batch(LENGTHS)
    caches = random_caches(model, len(LENGTHS))
    for record, expected in [
        (("*",), {"alignments", "cache_match", "cache_gate", "decoder_state"}),
        (("cache_gate",), {"cache_gate"}),
        (("alignments",), {"alignments"}),
        ((), set()),
    ]:
        assert set(decode(model, batch, caches, record)[0].diagnostics) == expected


# --- searches ----------------------------------------------------------------------------


def run_search(model, batch, document, width=None):
    """Ids, lengths, scores of a beam search, or without a width greedily."""
    prepared = prepare(model, batch, document)
    options = search.SearchOptions(LIMIT, with_alignments=True)
    if width is None:
        hypotheses = search.greedy(model, prepared, options)
    else:
        hypotheses = search.beam_search(
            model, prepared, BeamOptions(width, num_best=width), options
        )
    return [part.numpy() for part in hypotheses[:4]]


@pytest.mark.quick("deep-True-dot", "shallow-False-dot")
@pytest.mark.parametrize("fusion,overwrite,matching", VARIANTS)
def test_a_search_reads_the_cache_as_forced_decoding_does(fusion, overwrite, matching):
    changes = {"cache_overwrite": overwrite, "cache_matching": matching}
    model = large_model("rnnsearch", **settings(fusion, **changes))
    batch, width = small_models.batch(LENGTHS, 7), 3
    caches = random_caches(model, len(LENGTHS))
    beam, greedy = run_search(model, batch, caches, 1), run_search(model, batch, caches)
    for of_beam, of_greedy in zip(beam[:2], greedy[:2]):  # to the longer one's end
        steps = min(of_beam.shape[-1], of_greedy.shape[-1]) if of_beam.ndim == 3 else None
        np.testing.assert_array_equal(of_beam[..., :steps], of_greedy[..., :steps])
    np.testing.assert_allclose(beam[2], greedy[2], rtol=1e-4, atol=1e-4)
    ids, lengths, scores, _ = run_search(model, batch, caches, width)
    flat = ids.reshape(len(LENGTHS) * width, -1)
    read = np.concatenate([np.full([len(flat), 1], SOS), flat[:, :-1]], axis=1)
    source = tf.repeat(tf.constant(batch.source), width, axis=0)
    for document, is_expected in ((caches, True), ((), False)):
        document = tf.nest.map_structure(lambda v: tf.repeat(v, width, axis=0), document)
        forced, *_ = forced_log_probs(
            model,
            model.prepare(source, np.repeat(batch.source_length, width), document=document),
            tf.constant(read, tf.int32), tf.constant(flat),
            tf.constant(lengths.ravel(), tf.int32),
        )  # fmt: skip
        total = tf.reduce_sum(forced, axis=1).numpy().reshape(scores.shape)
        assert np.allclose(total, scores, rtol=1e-4, atol=1e-4) == is_expected
        np.testing.assert_allclose(total[1], scores[1], rtol=1e-4, atol=1e-4)  # that is empty
    assert {EOS} < set(ids.ravel())


@pytest.mark.parametrize("fusion", FUSIONS)
def test_a_sentence_does_not_depend_on_the_rest_of_the_batch(fusion):
    model, batch = large_model("rnnsearch", **settings(fusion)), small_models.batch(LENGTHS, 3)
    caches = random_caches(model, len(LENGTHS))
    together, _ = decode(model, batch, caches)
    ids, lengths, scores, _ = run_search(model, batch, caches, 2)
    for row, length in enumerate(batch.source_length):
        single = [part[row : row + 1] for part in batch]
        single = type(batch)(single[0][:, :length], *single[1:])
        document = continuous_cache.Cache(*(part[row : row + 1] for part in caches))
        single_forced, _ = decode(model, single, document)
        steps = batch.target_length[row]
        np.testing.assert_allclose(
            single_forced.outputs[:steps, 0], together.outputs[:steps, row], atol=1e-5
        )
        single_search = run_search(model, single, document, 2)
        np.testing.assert_array_equal(single_search[1][0], lengths[row])
        np.testing.assert_array_equal(
            single_search[0][0], ids[row, :, : single_search[0].shape[-1]]
        )
        np.testing.assert_allclose(single_search[2][0], scores[row], rtol=1e-4, atol=1e-4)


# --- parameters --------------------------------------------------------------------------


@pytest.mark.parametrize("fusion,more", [("deep", 4_000_000), ("shallow", 4_000)])
def test_the_papers_parameters(fusion, more):
    counts = []
    for changes in ({"cell": "rnnsearch"}, {"cell": "cache", "cache_fusion": fusion}):
        h = HParams(
            **changes, num_units=1000, embedding_size=620, encoder_type="bi", unit_type="gru",
            annotation_merge="concat",
        )  # fmt: skip
        counts.append(count_parameters(h, 5, 5))
    assert counts[1] - counts[0] == more == oracle.count_parameters(1000, 2000, fusion)

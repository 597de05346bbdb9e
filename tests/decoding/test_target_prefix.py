"""Given first words: in greedy, beam and sampled search, with both loops, in documents, as text."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.searches import LENGTHS, Stepper, as_arrays, check, large_model, prepare
from helpers.translations import BEAM, LINES, PAIRS, languages, scores, texts, translator
from oracles import beam as oracle

from tfmann.decoding import backend, search
from tfmann.decoding.beam import BeamOptions
from tfmann.decoding.ensemble import Ensemble
from tfmann.decoding.restrictions import Restrictions
from tfmann.decoding.sampling import SamplingOptions
from tfmann.decoding.target_prefix import pad_prefixes
from tfmann.decoding.translator_choice import make_translator
from tfmann.errors import UserError

EOS, LIMIT = 2, 6
PREFIXES = [(7, 3), (), (5, 5, 4, 9, 3, 8, 6, 7), (9,)]  # the third has more words than LIMIT
CELLS = ["luong", "ntm-heads", "kvmematt-1"]
BEAMS = [(0.0, 0.0, 0, 0), (0.8, 0.3, 0, 0), (0.0, 0.0, 4, 2)]  # alpha, beta, least length, n
TEXT = ["b5 b6", "b7", "", "b3 b3 b3 b4", "", "", "b9 b8", "nowhere b3", "b4"]


def options(restrictions=(), prefixes=PREFIXES):
    return search.SearchOptions(
        LIMIT, True, restrictions=Restrictions(*restrictions), prefix=pad_prefixes(prefixes)
    )


@pytest.mark.quick("ntm-heads-setting1-tfa", "luong-setting3-tfa", "luong-setting4-plain")
@pytest.mark.parametrize(
    ("variant", "setting", "loop"),
    [
        *((variant, BEAMS[1], "tfa") for variant in CELLS),
        ("luong", BEAMS[2], "tfa"),
        ("luong", BEAMS[1], "plain"),
        ("ntm-heads", BEAMS[0], "plain"),
    ],
)
def test_beam_search_equals_the_oracle(variant, setting, loop):
    if loop == "tfa" and backend.addons_or_none() is None:
        pytest.skip("tensorflow_addons cannot be imported")
    alpha, beta, *restrictions = setting
    model, batch = large_model(variant, 3, decoder_backend=loop), small_models.batch(LENGTHS, 3)
    beam = BeamOptions(3, alpha, beta, 3)
    hypotheses = as_arrays(
        search.beam_search(model, prepare(model, batch), beam, options(restrictions))
    )
    for row, (length, prefix) in enumerate(zip(batch.source_length, PREFIXES)):
        step = Stepper(model, batch, row)
        expected = oracle.beam_search(step, (), 3, LIMIT, alpha, beta, *restrictions, prefix)
        free = oracle.beam_search(step, (), 3, LIMIT, alpha, beta, *restrictions)
        assert bool(prefix) == ([h.ids for h in free] != [h.ids for h in expected])
        check(hypotheses, row, expected, 3, length)


@pytest.mark.quick("luong-tfa", "kvmematt-1-plain")
@pytest.mark.parametrize(
    ("variant", "loop"), [("luong", "tfa"), ("ntm-heads", "tfa"), ("kvmematt-1", "plain")]
)
def test_greedy_search_equals_the_oracle(variant, loop):
    if loop == "tfa" and backend.addons_or_none() is None:
        pytest.skip("tensorflow_addons cannot be imported")
    model, batch = large_model(variant, 8, decoder_backend=loop), small_models.batch(LENGTHS, 8)
    hypotheses = as_arrays(search.greedy(model, prepare(model, batch), options()))
    for row, (length, prefix) in enumerate(zip(batch.source_length, PREFIXES)):
        expected = [oracle.greedy(Stepper(model, batch, row), (), LIMIT, prefix=prefix)]
        check(hypotheses, row, expected, 1, length)


def test_a_sample_begins_with_its_words():
    model, batch = large_model("luong", 4), small_models.batch([(5, 1)] * 40, 4)
    prefixes = [(7, 3, 5)] * 20 + [()] * 20
    with_prefixes = options(prefixes=prefixes)._replace(with_alignments=False)
    prepared, seed = prepare(model, batch), tf.constant([1, 2])
    sampled = as_arrays(search.sample(model, prepared, SamplingOptions(1.5), seed, with_prefixes))
    free = as_arrays(
        search.sample(
            model, prepared, SamplingOptions(1.5), seed, with_prefixes._replace(prefix=None)
        )
    )
    assert (sampled.ids[:20, 0, :3] == [7, 3, 5]).all()
    assert len({tuple(row) for row in sampled.ids[:20, 0]}) > 5, "the rest is not drawn"
    width = min(sampled.ids.shape[2], free.ids.shape[2])
    np.testing.assert_array_equal(sampled.ids[20:, :, :width], free.ids[20:, :, :width])


@pytest.mark.quick("cache")
@pytest.mark.parametrize("kind", ["greedy", "beam_search", "cache", "ensemble"])
def test_texts_begin_with_the_words_whatever_their_batch(kind):
    settings = {"infer_mode": "greedy"} if kind == "greedy" else BEAM
    members = [translator("ntm", **settings), translator("rnnsearch", **settings)]
    system = members[0]
    if kind == "ensemble":
        parts = Ensemble([m.model for m in members]), languages(), members[0].hparams, None
        system = make_translator(*parts)
    elif kind == "cache":
        sizes = {"init_weight": 1.0, "embedding_init_weight": 3.0, "unit_type": "gru"}
        model = small_models.model("rnnsearch", cell="cache", cache_size=4, **sizes, **settings)
        system = make_translator(model, languages(), model.hparams, None)
    n_best_lists = list(system.translate(LINES, prefixes=TEXT))
    for line, text, n_best in zip(LINES, TEXT, n_best_lists):
        for translation in n_best:
            assert translation.text.startswith(text if line.strip() else "")
    ids = np.arange(len(LINES))
    single = [next(system.translate([x], prefixes=[y])) for x, y in zip(LINES, TEXT)]
    apart = list(system.translate(LINES, prefixes=TEXT, documents=ids))
    assert texts(apart) == texts(single)
    for row, single_scores in zip(scores(apart), scores(single)):
        np.testing.assert_allclose(row, single_scores, atol=2e-5)
    blank = list(system.translate(LINES, prefixes=["", " ", "\u00a0\u3000"] * (len(LINES) // 3)))
    assert texts(blank) == texts(system.translate(LINES))


def test_a_score_is_that_of_the_forced_decoding():
    system = translator("ntm", **BEAM)
    for line, prefix in (("a3 a9 a14", "b5 b6"), (PAIRS[3][0], "b7 unheard-of b3")):
        [n_best] = system.translate([line], prefixes=[prefix])
        assert n_best[0].text.startswith(prefix), "an unknown word is as it was given"
        [forced] = system.force_translations(n_best[:1])
        assert forced.log_prob == pytest.approx(n_best[0].score, abs=1e-4)


def test_prefixes_must_fit_the_lines():
    system = translator("ntm", **BEAM)
    with pytest.raises(UserError, match="line 3 has no prefix"):
        list(system.translate(LINES[:3], prefixes=TEXT[:2]))
    with pytest.raises(UserError, match="more prefixes than lines: expected 2"):
        list(system.translate(LINES[:2], prefixes=TEXT[:3]))

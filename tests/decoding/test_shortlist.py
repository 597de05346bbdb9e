"""Shortlists: every search against slow ones over the lists, batches, given words, messages."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.command_line import LINES as GERMAN_LINES
from helpers.command_line import command, write_model
from helpers.searches import LENGTHS, SIGNATURE, Stepper, as_arrays, check, large_model, prepare
from helpers.translations import LINES, assert_same, languages, scores, texts, translator
from oracles import beam as oracle
from oracles.shortlist import restrict

import tfmann
from tfmann import nmt
from tfmann.api import Model
from tfmann.config import HParams
from tfmann.data.shortlist_lexicon import TranslationLists
from tfmann.data.subword import WordSegmenter
from tfmann.data.text_encoder import LanguagePair, TextEncoder
from tfmann.data.vocab import Vocabulary
from tfmann.decoding import backend, search, shortlist
from tfmann.decoding.beam import BeamOptions
from tfmann.decoding.ensemble import Ensemble
from tfmann.decoding.lexical_constraints import Phrases, pad_phrases
from tfmann.decoding.restrictions import Restrictions
from tfmann.decoding.sampling import SamplingOptions
from tfmann.decoding.target_prefix import pad_prefixes
from tfmann.decoding.translation import Prefix, SourceLine
from tfmann.decoding.translator_choice import make_translator
from tfmann.errors import UsageError, UserError
from tfmann.export.settings import require_fixed

LIMIT, V = 6, small_models.TARGET_SIZE
PENALTIES = [(0.0, 0.0, 0, 0), (0.8, 0.3, 0, 0), (0.5, 0.0, 4, 2)]  # alpha, beta, least length, n
PREFIXES = [(7, 3), (), (5, 4), (9,)]
PHRASES = [[[8, 4]], [[6]], [], [[11], [3]]]
LARGE = {"init_weight": 1.0, "embedding_init_weight": 3.0}
BEAM = {"beam_width": 3, "num_translations_per_input": 2}


def draw_lists(seed, size=3):
    """Lists of `size` words for each source word, and two words for all sentences."""
    stream = np.random.default_rng(seed)
    rows = [stream.permutation(np.arange(3, V))[:size] for _ in range(small_models.SOURCE_SIZE)]
    always = np.array([0, 1, 2, *stream.integers(3, V, 2)], np.int32)
    starts = np.arange(len(rows) + 1) * size
    return TranslationLists(always, starts, np.concatenate(rows).astype(np.int32))


def lines_of(batch, prefixes=(), phrases=()):
    prefixes, phrases = prefixes or [()] * len(LENGTHS), phrases or [()] * len(LENGTHS)
    return [
        SourceLine("", list(row[:length]), 0, [], None, Prefix([], list(prefix)), some)
        for row, length, prefix, some in zip(batch.source, batch.source_length, prefixes, phrases)
    ]


def options(lists, lines, width, restrictions=()):
    arrays = shortlist.of_batch(lists, lines, width)
    given = [line.prefix.ids for line in lines]
    phrases = [line.phrases for line in lines]
    return search.SearchOptions(
        LIMIT,
        True,
        restrictions=Restrictions(*restrictions),
        prefix=tf.constant(pad_prefixes(given)) if any(given) else None,
        phrases=Phrases(tf.constant(pad_phrases(phrases))) if any(phrases) else None,
        shortlist=shortlist.Shortlist(*map(tf.constant, arrays[:2])),
    )


def require_loop(loop):
    if loop == "tfa" and backend.addons_or_none() is None:
        pytest.skip("tensorflow_addons cannot be imported")


@pytest.mark.quick("free-luong-setting0-tfa", "prefixes-rnnsearch-setting3-plain")
@pytest.mark.parametrize(
    ("variant", "setting", "loop"),
    [
        ("luong", PENALTIES[0], "tfa"),
        ("luong", PENALTIES[1], "plain"),
        ("ntm-heads", PENALTIES[1], "tfa"),
        ("rnnsearch", PENALTIES[2], "plain"),
    ],
)
@pytest.mark.parametrize("prefixes", [(), PREFIXES], ids=["free", "prefixes"])
def test_beam_search_equals_the_oracle(variant, setting, loop, prefixes):
    require_loop(loop)
    alpha, beta, *restrictions = setting
    model, batch = large_model(variant, 3, decoder_backend=loop), small_models.batch(LENGTHS, 3)
    lists, lines = draw_lists(4), lines_of(batch, prefixes)
    found = search.beam_search(
        model, prepare(model, batch), BeamOptions(3, alpha, beta, 3),
        options(lists, lines, 3, restrictions),
    )  # fmt: skip
    hypotheses = as_arrays(found)
    for row, line in enumerate(lines):
        allowed = lists.of_sentence(line.ids, line.prefix.ids)
        step = restrict(Stepper(model, batch, row), allowed)
        rules = (alpha, beta, *restrictions, line.prefix.ids)
        expected = oracle.beam_search(step, (), 3, LIMIT, *rules)
        check(hypotheses, row, expected, 3, batch.source_length[row])
        free = oracle.beam_search(Stepper(model, batch, row), (), 3, LIMIT, *rules)
        assert [h.score for h in free] != pytest.approx([h.score for h in expected])


@pytest.mark.quick("luong-tfa")
@pytest.mark.parametrize(
    ("variant", "loop"), [("luong", "tfa"), ("ntm-heads", "plain"), ("rnnsearch", "tfa")]
)
def test_greedy_search_equals_the_oracle(variant, loop):
    require_loop(loop)
    model, batch = large_model(variant, 8, decoder_backend=loop), small_models.batch(LENGTHS, 8)
    lists, lines = draw_lists(5), lines_of(batch, PREFIXES)
    hypotheses = as_arrays(search.greedy(model, prepare(model, batch), options(lists, lines, 1)))
    for row, line in enumerate(lines):
        allowed = lists.of_sentence(line.ids, line.prefix.ids)
        step = restrict(Stepper(model, batch, row), allowed)
        expected = [oracle.greedy(step, (), LIMIT, prefix=line.prefix.ids)]
        check(hypotheses, row, expected, 1, batch.source_length[row])


def test_phrases_outside_the_list_are_in_the_translation():
    model, batch = large_model("rnnsearch", 6), small_models.batch(LENGTHS, 6)
    lists, lines = draw_lists(2, size=1), lines_of(batch, phrases=PHRASES)
    prepared, beam = prepare(model, batch), BeamOptions(5, num_best=2)
    hypotheses = as_arrays(search.beam_search(model, prepared, beam, options(lists, lines, 5)))
    added = 0
    for row, line in enumerate(lines):
        given = [word for phrase in line.phrases for word in phrase]
        allowed = set(lists.of_sentence(line.ids, given).tolist())
        added += len(allowed) - len(lists.of_sentence(line.ids))
        for ids in hypotheses.ids[row]:
            assert set(ids) <= allowed
            for phrase in line.phrases:
                assert f" {' '.join(map(str, phrase))} " in f" {' '.join(map(str, ids))} "
    assert added > 3, "the lists have the phrases"


def test_samples_are_drawn_from_the_list_alone_whatever_the_batch():
    model, batch = large_model("luong", 4), small_models.batch([(5, 1)] * 40, 4)
    sampling, seed = SamplingOptions(2.0), tf.constant([1, 2])
    lines = [SourceLine("", list(row[:5]), 0, []) for row in batch.source]
    lists = draw_lists(7, size=2)

    def draw(other):
        arrays = shortlist.of_batch(lists, [*lines[:20], *other], 1)
        lists_of_batch = shortlist.Shortlist(*map(tf.constant, arrays[:2]))
        choices = search.SearchOptions(LIMIT, shortlist=lists_of_batch)
        return as_arrays(search.sample(model, prepare(model, batch), sampling, seed, choices))

    drawn = draw(lines[20:])
    words = [set(ids) - {0, 2} for ids in drawn.ids[:, 0]]
    for line, chosen in zip(lines, words):
        assert chosen <= set(lists.of_sentence(line.ids))
    assert len(set().union(*words)) > 12
    narrow = draw([SourceLine("", [], 0, [])] * 20)  # fewer columns in the batch
    width = min(drawn.ids.shape[2], narrow.ids.shape[2])
    np.testing.assert_array_equal(drawn.ids[:20, :, :width], narrow.ids[:20, :, :width])


@pytest.mark.quick("luong-beam_search")
@pytest.mark.parametrize("kind", ["greedy", "beam_search"])
@pytest.mark.parametrize("variant", ["luong", "ntm-heads", "rnnsearch"])
def test_a_shortlist_of_all_words_is_the_exact_search(variant, kind):
    model, batch = large_model(variant, 9), small_models.batch(LENGTHS, 9)
    everything = draw_lists(1, size=V - 3)
    restricted = options(everything, lines_of(batch), 4)
    results = []
    for choices in (restricted, restricted._replace(shortlist=None)):
        if kind == "greedy":
            found = search.greedy(model, prepare(model, batch), choices)
        else:
            beam = BeamOptions(4, 0.8, num_best=4)
            found = search.beam_search(model, prepare(model, batch), beam, choices)
        results.append(as_arrays(found))
    np.testing.assert_array_equal(results[0].ids, results[1].ids)
    np.testing.assert_allclose(results[0].scores, results[1].scores, atol=1e-4)
    np.testing.assert_allclose(results[0].alignments, results[1].alignments, atol=1e-5)


def test_the_best_words_of_a_wide_shortlist_are_found_by_blocks():
    """Of more columns than `top_words` takes whole, with a width that the graph does not know."""
    model = large_model("luong", 2, target_size=700)
    batch = small_models.batch(LENGTHS, 2)
    words = np.arange(3, 700, dtype=np.int32)
    starts = np.minimum(np.arange(small_models.SOURCE_SIZE + 1), 1) * len(words)
    lists = TranslationLists(np.array([0, 1, 2, 600], np.int32), starts, words)
    lines = [SourceLine("", [0], 0, []), *lines_of(batch)[1:]]  # one has all words
    choices, beam = options(lists, lines, 3), BeamOptions(3, num_best=3)

    @tf.function(autograph=False, input_signature=[*SIGNATURE, shortlist.SIGNATURE])
    def run(source, length, lists_of_batch):
        wide = choices._replace(shortlist=lists_of_batch)
        return search.beam_search(model, model.prepare(source, length), beam, wide)

    hypotheses = as_arrays(run(batch.source, batch.source_length, choices.shortlist))
    exact = as_arrays(
        search.beam_search(model, prepare(model, batch), beam, choices._replace(shortlist=None))
    )
    steps = min(hypotheses.ids.shape[2], exact.ids.shape[2])
    np.testing.assert_array_equal(hypotheses.ids[0, :, :steps], exact.ids[0, :, :steps])
    np.testing.assert_allclose(hypotheses.scores[0], exact.scores[0], atol=1e-4)
    assert set(hypotheses.ids[3].ravel()) <= {0, 2, 600}


# --- Translators --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lexicon_file(tmp_path_factory):
    """A lexicon of the words of `helpers.translations`: three translations of each source word."""
    stream, path = np.random.default_rng(3), tmp_path_factory.mktemp("lexicon") / "shortlist.txt"
    source, target = (side.vocabulary.tokens for side in languages())
    rows = [
        f"{word} {target[i]} {0.5 / rank:.3f}"
        for word in source[3:]
        for rank, i in enumerate(stream.permutation(np.arange(3, len(target)))[:3], start=1)
    ]
    path.write_text("".join(f"{row}\n" for row in rows))
    return str(path)


def make_system(kind, lexicon_file, **settings):
    settings = {
        "shortlist": lexicon_file, "shortlist_first": 1, "shortlist_best": 2, **BEAM, **settings
    }  # fmt: skip
    if kind == "cache":
        model = small_models.model(
            "rnnsearch", cell="cache", cache_size=4, unit_type="gru", **LARGE, **settings
        )
        return make_translator(model, languages(), model.hparams, None)
    if kind in ("greedy", "sample"):
        settings["infer_mode"] = kind
        settings["num_translations_per_input"] = 1
    members = [translator(name, **settings) for name in ("rnnsearch", "ntm")]
    model = members[0].model
    if kind == "ensemble":
        model = Ensemble([member.model for member in members])
    return make_translator(model, languages(), members[0].hparams, None)


@pytest.mark.quick("cache")
@pytest.mark.parametrize("kind", ["greedy", "beam_search", "cache", "ensemble"])
def test_texts_have_the_words_of_their_lists_whatever_their_batch(kind, lexicon_file):
    system = make_system(kind, lexicon_file)
    prefixes = ["b5 b6", "b7", "", "b3", "", "", "b9 b8", "", "b4"]
    ids = np.arange(len(LINES))
    together = list(system.translate(LINES, documents=ids, prefixes=prefixes))
    tokens = languages().target.vocabulary.tokens
    for line, prefix, n_best in zip(LINES, prefixes, together):
        given = languages().target.encode(prefix)
        allowed = system.lists.of_sentence(languages().source.encode(line), given)
        for translation in n_best:
            assert set(translation.tokens) <= {tokens[i] for i in allowed}
            assert translation.text.startswith(prefix if line.strip() else "")
    single = [next(system.translate([x], prefixes=[y])) for x, y in zip(LINES, prefixes)]
    assert texts(together) == texts(single)
    for row, single_row in zip(scores(together), scores(single)):
        np.testing.assert_allclose(row, single_row, atol=3e-5)


def test_samples_of_several_translations_keep_to_the_lists(lexicon_file):
    system = make_system("sample", lexicon_file, sampling_temperature=3.0)
    system = Model(system, "").with_search(num_translations_per_input=4).translator
    tokens, drawn = languages().target.vocabulary.tokens, set()
    for line, samples in zip(LINES, system.translate(LINES)):
        allowed = system.lists.of_sentence(languages().source.encode(line))
        for sample in samples:
            assert set(sample.tokens) <= {tokens[i] for i in allowed}
            drawn.add(sample.text)
    assert len(drawn) > 14


def test_an_ensemble_of_one_model_twice_is_the_model(lexicon_file, untraced):
    system = make_system("beam_search", lexicon_file)
    parts = Ensemble([system.model] * 2), languages(), system.hparams, None
    assert_same(list(make_translator(*parts).translate(LINES)), list(system.translate(LINES)))


def test_a_score_is_above_that_of_the_forced_decoding(lexicon_file, untraced):
    """The forced decoding is exact; a list has less mass to divide by."""
    system = make_system("beam_search", lexicon_file)
    exact = translator("rnnsearch", **BEAM)
    [best, *_] = next(system.translate(["a3 a9 a14"]))
    [forced] = system.force_translations([best])
    [expected] = exact.force_translations([best])
    assert forced.log_prob == pytest.approx(expected.log_prob, abs=1e-5)
    assert best.score > forced.log_prob + 0.1


def test_settings_of_the_search_change_the_lists(lexicon_file, untraced):
    model = Model(translator("rnnsearch", **BEAM), "")
    exact = texts(model.translate(LINES))
    limited = model.with_search(shortlist=lexicon_file, shortlist_first=0, shortlist_best=1)
    assert texts(limited.translate(LINES)) != exact
    assert limited.with_search(beam_width=4).translator.lists is limited.translator.lists
    wider = limited.with_search(shortlist_best=2).translator.lists
    assert len(wider.targets) == 2 * len(limited.translator.lists.targets)
    off = limited.with_search(shortlist="")
    assert off.translator.lists is None and texts(off.translate(LINES)) == exact


def test_a_lexicon_of_other_words_is_refused(lexicon_file):
    sides = [TextEncoder(Vocabulary.from_tokens(w), WordSegmenter()) for w in (["x"], ["y"])]
    h = HParams(shortlist=lexicon_file)
    model = small_models.model("luong")
    with pytest.raises(UserError, match=f"{lexicon_file}: no line has .*'x y 0.5'"):
        make_translator(model, LanguagePair(*sides), h, None)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"neural_cache_size": 3}, "shortlist='l' and neural_cache_size=3"),
        ({"translation_memory": "a,b"}, "shortlist='l' and translation_memory='a,b'"),
        ({"cell": "cache", "cache_fusion": "shallow", "unit_type": "gru"},
         "shortlist='l' and cache_fusion='shallow'"),
    ],
)  # fmt: skip
def test_what_proposes_words_of_its_own_is_refused(settings, words):
    with pytest.raises(UsageError, match=words):
        HParams(shortlist="l", **settings)


def test_an_export_has_no_shortlist():
    with pytest.raises(UsageError, match="shortlist='l' is not part of an export"):
        require_fixed(HParams(shortlist="l"))


# --- Command line, Python, server ---------------------------------------------------------------


def test_a_run_translates_with_a_lexicon_of_its_own(tmp_path, capsys):
    (tmp_path / "run").mkdir()
    folder = write_model(tmp_path / "run")
    for side, lines in (("src", GERMAN_LINES), ("tgt", [x.upper() for x in GERMAN_LINES])):
        (tmp_path / f"train.{side}").write_text("\n".join(lines) + "\n")
    out = tmp_path / "out"
    prefix = {"train_prefix": tmp_path / "train"}
    assert nmt.main(command(folder, mode="shortlist", **prefix, shortlist_first=0)) == 0
    name = folder / "shortlist.txt"
    settings = {"shortlist": name, "shortlist_best": 1}
    argv = command(
        folder, inference_input_file=tmp_path / "train.src", inference_output_file=out, **settings
    )
    assert nmt.main(argv) == 0
    lines = out.read_text().splitlines()
    model = tfmann.load(str(folder), shortlist=str(name), shortlist_best=1)
    assert lines == [n_best[0].text for n_best in model.translate(GERMAN_LINES)]
    lists = model.translator.lists
    for source, text in zip(GERMAN_LINES, lines):
        encoder = model.translator.languages
        allowed = encoder.target.vocabulary.decode(
            lists.of_sentence(encoder.source.encode(source)).tolist()
        )
        assert set(text.split()) <= set(allowed)
    translator_ = model.translator
    document = [line for line in GERMAN_LINES if line.strip()]
    [served], _ = translator_.resume([document], [translator_.begin_document()])  # as the server
    assert [n_best[0].text for n_best in served] == [line for line in lines if line]

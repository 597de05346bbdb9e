"""A translation memory on models of several cells: what it computes, and what it leaves alone."""

import functools
import re

import numpy as np
import pytest
from helpers import small_models, translations
from helpers.memory_models import (
    CELLS,
    KNOWN,
    LINES,
    MEMORY,
    NEIGHBORS,
    TARGETS,
    TAU,
    datastore_of,
    model_of,
    run,
    sentence_of,
    translator,
    write_files,
)
from oracles import beam
from oracles import nearest_neighbors as oracle

from tfmann.cells.diagnostics import EVERYTHING
from tfmann.data import datastore_folder, retrieval, translation_memory
from tfmann.decoding.forced_readouts import ForcedReadouts
from tfmann.decoding.memory_translator import MemoryTranslator, write_datastore
from tfmann.decoding.translator import Translator
from tfmann.decoding.translator_choice import make_translator
from tfmann.errors import UsageError, UserError
from tfmann.export.settings import require_fixed


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("memory"))


@pytest.mark.quick("luong")
@pytest.mark.parametrize("name", list(CELLS))
def test_forced_decoding_equals_the_oracle(name, files):
    system = translator(name, files)
    forced = system.force(zip(LINES, TARGETS), documents=range(len(LINES)))
    gains = []
    for line, target, result in zip(LINES, TARGETS, forced):
        words = [*translations.languages().target.encode(target), 2]
        if not line:
            continue
        probabilities, readouts = sentence_of(name, line).forced(words)
        entries = datastore_of(name, line)
        mixed = [
            oracle.mixture(p, q, entries, NEIGHBORS, TAU, None)[word]
            for p, q, word in zip(probabilities, readouts, words)
        ]
        np.testing.assert_allclose(result.word_log_probs, np.log(mixed), rtol=2e-4, atol=2e-4)
        gains.append(np.abs(np.log(mixed) - np.log(probabilities[range(len(words)), words])).max())
    assert max(gains) > 0.1 and gains[2] < 1e-6  # the memory has nothing like "a4 a4"


@pytest.mark.quick("luong")
@pytest.mark.parametrize("name", ["luong", "rnnsearch"])
def test_a_trace_has_the_votes_of_the_neighbours(name, files):
    system = translator(name, files)
    forced = system.force(zip(LINES, TARGETS), EVERYTHING, range(len(LINES)))
    target, seen = translations.languages().target, 0
    for line, text, result in zip(LINES, TARGETS, forced):
        if not line:
            continue
        memory, words = result.word_memory, [*target.encode(text), 2]
        probabilities, readouts = sentence_of(name, line).forced(words)
        entries = datastore_of(name, line)
        p_words = probabilities[range(len(words)), words]
        np.testing.assert_allclose(memory.model, p_words, rtol=2e-4)
        for step, (q, word) in enumerate(zip(readouts, words)):
            neighbors = oracle.nearest(q, entries, NEIGHBORS)
            share = max(0.0, 1 - neighbors[0][0] / TAU) if neighbors else 0.0
            assert memory.share[step] == pytest.approx(share, abs=2e-4)
            votes = np.exp([-distance / TAU for distance, _ in neighbors])
            votes /= votes.sum() or 1.0
            given = [(w, e.word) for w, e in zip(memory.weights[step], memory.entries) if w > 0]
            wanted = zip(votes.tolist(), target.vocabulary.decode([w for _, w in neighbors]))
            for (weight, name_of), (vote, voted) in zip(
                sorted(given, reverse=True), sorted(wanted, reverse=True)
            ):
                assert weight == pytest.approx(vote, rel=1e-3, abs=1e-5) and name_of == voted
            of_word = sum(vote for vote, (_, w) in zip(votes, neighbors) if w == word)
            assert memory.memory[step] == pytest.approx(of_word, rel=1e-3, abs=1e-5)
        for entry in memory.entries:
            pair, position = map(int, re.findall(r"[0-9]+", entry.origin))
            stored = [*KNOWN[pair - 1][1].split(), "</s>"]
            assert stored[position - 1] == entry.word
            seen += 1
    assert seen > 5


@pytest.mark.quick("3-rnnsearch")
@pytest.mark.parametrize("name", ["rnnsearch", "ntm"])
@pytest.mark.parametrize("width", [1, 3])
def test_a_search_equals_the_oracle(name, width, files):
    lines = [LINES[1], LINES[4]]
    for line, [result] in zip(lines, run(name, files, lines, beam_width=width)):
        sentence, entries = sentence_of(name, line), datastore_of(name, line)
        mixture = functools.partial(
            oracle.mixture, entries=entries, k=NEIGHBORS, tau=TAU, weight=None
        )
        best = beam.beam_search(sentence.step_with(mixture), (), width, sentence.limit)[0]
        assert result.tokens == translations.languages().target.vocabulary.decode(list(best.ids))
        assert result.score == pytest.approx(best.score, rel=1e-3, abs=1e-3)


@pytest.mark.quick("beam_search-luong")
@pytest.mark.parametrize("name", ["luong", "rnnsearch"])
@pytest.mark.parametrize("mode", ["greedy", "beam_search"])
def test_a_sentence_of_the_memory_is_translated_as_there(name, mode, files):
    """Whatever the model knows: its readout is the key at every step, at a distance of 0."""
    pairs = [pair for pair in KNOWN if "unheard-of" not in pair[1]]
    lines = [source for source, _ in pairs]
    results = run(name, files, lines, infer_mode=mode, translation_memory_neighbors=1)
    assert translations.texts(results) == [[target] for _, target in pairs]
    assert translations.texts(run(name, None, lines, infer_mode=mode)) != [[t] for _, t in pairs]


def test_keys_are_of_sentences_outside_any_document(files):
    system = translator("previous", files, translation_memory_neighbors=1)
    pairs = [KNOWN[0], KNOWN[3]]
    alone, inside = (
        system.force(pairs, EVERYTHING, documents)[1].word_memory.share
        for documents in ([0, 1], [0, 0])
    )
    assert alone.min() > 0.999 and inside.min() < 0.99  # the distance is 0, and it is not


@pytest.mark.quick("changes0")
@pytest.mark.parametrize("changes", [{}, {"translation_memory_lambda": 0.4}])
def test_neighbours_in_a_batch_change_nothing(changes, files):
    expected = [run("rnnsearch", files, [line], **changes)[0] for line in LINES]
    for size in (2, 32):
        translations.assert_same(run("rnnsearch", files, size=size, **changes), expected)
    plain = run("rnnsearch", None)
    assert any(a[0].score != b[0].score for a, b in zip(plain, expected))


def test_a_beam_of_one_is_the_greedy_search(files):
    translations.assert_same(
        run("rnnsearch", files, beam_width=1), run("rnnsearch", files, infer_mode="greedy")
    )


def test_a_sentence_without_hits_is_translated_by_the_model_alone(files):
    lines = ["a4 a4", "nowhere", "a4"]
    result, expected = run("rnnsearch", files, lines), run("rnnsearch", None, lines)
    assert translations.texts(result) == translations.texts(expected)
    assert translations.scores(result) == translations.scores(expected)


@pytest.mark.parametrize("changes", [
    {"translation_memory_lambda": 0.0}, {"translation_memory_tau": 1e-6},
])  # fmt: skip
def test_a_memory_without_a_share_changes_nothing(changes, files):
    lines = ["a9 a14", "a12"]  # like the memory's, and none of them
    translations.assert_same(
        run("rnnsearch", files, lines, **changes), run("rnnsearch", None, lines)
    )


def test_samples_and_documents_in_parts_are_drawn_with_the_memory(files):
    samples = {"infer_mode": "sample", "num_translations_per_input": 2,
               "translation_memory_neighbors": 1, "sampling_top_k": 1}  # fmt: skip
    [sampled] = run("rnnsearch", files, [MEMORY[0][0]], **samples)
    assert [hypothesis.text for hypothesis in sampled] == [MEMORY[0][1]] * 2
    system = translator("previous", files)
    parts, state = [], system.begin_document()
    for line in (LINES[0], LINES[4]):
        [[n_best]], [state] = system.resume([[line]], [state])
        parts.append(n_best)
    translations.assert_same(parts, list(system.translate([LINES[0], LINES[4]], documents=[1, 1])))


def test_entries_are_the_words_of_the_pairs_without_unknown_ones(files):
    system = translator("rnnsearch", files)
    keys, words = system._datastores([[2, 1], [], [1]])
    pairs = [[*translations.languages().target.encode(KNOWN[n][1]), 2] for n in (2, 1)]
    expected = [word if word else -1 for pair in pairs for word in pair]
    assert expected.count(-1) == 1 and words[0].tolist() == expected
    assert words[1:].tolist() == [[-1] * 9, [*pairs[1], *[-1] * 6]]
    np.testing.assert_allclose(keys[2, :3], keys[0, 6:], atol=1e-5)


def test_distances_are_those_to_the_nearest_entry(files):
    system = translator("rnnsearch", files)
    result = system.least_distances([KNOWN[0], ("a4", "b3 b4"), ("a9 a14", "b5")])
    entries = datastore_of("rnnsearch", "a9 a14")
    _, readouts = sentence_of("rnnsearch", "a9 a14").forced([5, 2])
    expected = [oracle.nearest(query, entries, 1)[0][0] for query in readouts]
    assert result[:5].max() < 1e-3 and np.isinf(result[5:8]).all()
    np.testing.assert_allclose(result[8:], expected, rtol=1e-3, atol=1e-4)


def test_distances_are_those_of_the_sources_as_a_search_reads_them(files):
    system = translator("rnnsearch", files, src_max_len_infer=2)
    [forced] = system.force([KNOWN[0]], EVERYTHING)
    expected = np.maximum(0.0, 1 - system.least_distances([KNOWN[0]]) / TAU)
    np.testing.assert_allclose(forced.word_memory.share, expected, atol=2e-4)
    assert expected.min() < 0.95, "it is not cut"


def test_a_readout_that_keys_cannot_hold_is_refused(files, tmp_path, monkeypatch):
    large = lambda self, pairs: [np.full([len(y) + 1, 8], 7e4) for _, y in pairs]  # noqa: E731
    monkeypatch.setattr(ForcedReadouts, "of_pairs", large)
    memory = translation_memory.load(files, translations.languages())
    with pytest.raises(
        UserError, match="^pair 1 of those without an empty side: .* without --keys"
    ):
        write_datastore(str(tmp_path), memory, {}, model_of("luong"), 4)


def test_a_translator_of_its_own(files):
    assert type(translator("rnnsearch", files)) is MemoryTranslator
    assert type(translator("rnnsearch", None)) is Translator


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"cell": "cache"}, "is for models without a cache, and the cell 'cache' has one"),
        ({"neural_cache_size": 3}, "translation_memory and neural_cache_size=3 cannot go together"),
        ({"translation_memory_pairs": 0}, "translation_memory_pairs: 0 is below the least value 1"),
        ({"translation_memory_neighbors": 0}, "translation_memory_neighbors: 0 is below"),
        ({"translation_memory_tau": 0.0}, "translation_memory_tau: 0.0 is below the least value"),
        ({"translation_memory_lambda": 1.0}, "translation_memory_lambda: 1.0 is not below 1.0"),
    ],
)
def test_nonsense_is_refused(changes, message):
    with pytest.raises(UsageError) as error:
        small_models.hparams("rnnsearch", **{"translation_memory": "a,b", **changes})
    assert message in str(error.value)


def test_an_export_with_a_memory_is_refused():
    with pytest.raises(UsageError, match="translation_memory='a,b' is not part of an export"):
        require_fixed(small_models.hparams("rnnsearch", translation_memory="a,b"))


def test_pairs_and_keys_are_of_one_datastore_though_it_is_replaced_meanwhile(
    files, tmp_path, monkeypatch
):
    model, languages, folder = model_of("luong"), translations.languages(), str(tmp_path / "tm")

    def write(memory):
        origin = {"text": languages.fingerprints, "files": {}, "left_out": 0}
        with datastore_folder.new_folder(folder) as path:
            write_datastore(path, memory, origin, model, 4)

    memory, load = translation_memory.load(files, languages), translation_memory.load
    backwards = [
        retrieval.pack([*map(side.sentence, range(side.size))][::-1]) for side in memory[:2]
    ]

    def load_and_replace(*arguments):
        loaded = load(*arguments)
        write(memory._replace(sources=backwards[0], targets=backwards[1]))
        return loaded

    write(memory)
    monkeypatch.setattr(translation_memory, "load", load_and_replace)
    hparams = model.hparams.replace(translation_memory=folder)
    system = make_translator(model, languages, hparams, None)
    expected = system._forced.of_pairs([memory.pair(n) for n in range(memory.sources.size)])
    for stored, computed in zip(system._readouts(range(memory.sources.size)), expected):
        np.testing.assert_allclose(stored, computed, atol=2e-3)


def test_searches_of_a_model_share_their_forced_decoding(files):
    system = translator("luong", files)
    model, languages = system.model, translations.languages()

    def again(previous, **changes):
        return make_translator(model, languages, system.hparams.replace(**changes), None, previous)

    wider = again(system, beam_width=4)
    assert wider._forced is system._forced
    assert again(wider, infer_batch_size=7)._forced._batch_size == 7
    other = make_translator(model_of("rnnsearch"), languages, system.hparams, None, system)
    assert other._forced._model is other.model

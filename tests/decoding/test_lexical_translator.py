"""A memory of word translations on models of several cells: what it computes, and what not."""

import functools

import numpy as np
import pytest
from helpers import small_models, translations
from helpers.sentences import Sentence
from oracles import beam
from oracles import lexical_memory as oracle

from tfmann.cells.diagnostics import EVERYTHING
from tfmann.data import lexical_memory_file, translation_table
from tfmann.data.lexical_memory_file import LexicalMemory
from tfmann.data.word_links import Links
from tfmann.decoding.forced_readouts import weights_digest
from tfmann.decoding.lexical_translator import LexicalTranslator
from tfmann.decoding.translator import Translator
from tfmann.decoding.translator_choice import make_translator
from tfmann.errors import UsageError, UserError
from tfmann.export.settings import require_fixed

LINES = ["a3 a9 a14 a5", "a12", "", "a4 a4", "a9 a14 nowhere a20", "a17 a6 a3"]
TARGETS = ["b5 b6 b5", "b11 b3", "b4", "b6 b5 b18", "b9 unheard-of b3 b6", "b17"]
CELLS = {
    "luong": {"cell": "luong", "unit_type": "lstm"},
    "rnnsearch": {"cell": "rnnsearch", "append_source_eos": False},
    "kvmematt": {"cell": "kvmematt"},
    "previous": {"cell": "previous"},
    "ntm": {"cell": "ntm", "encoder_type": "memory"},
    "transformer": {
        "cell": "transformer", "encoder_type": "transformer", "embedding_size": 0,
        "transformer_heads": 2,
    },
}  # fmt: skip
DEPTH = 6


def model_of(name):
    settings = {"unit_type": "gru", "projection_bias": True, **CELLS[name]}
    return translations.model("rnnsearch", **settings)


@functools.cache
def links():
    """Translations of all source words but a4's."""
    source, target = translations.languages()
    stream = np.random.default_rng(4)
    counts = stream.integers(1, 5, [len(source.vocabulary), len(target.vocabulary)])
    counts *= stream.random(counts.shape) < 0.3
    counts[:3], counts[:, :3], counts[source.encode("a4")[0]] = 0, 0, 0
    found = np.nonzero(counts)
    return Links(*found, counts[found])


@functools.cache
def weights_of(name):
    model, stream = model_of(name), np.random.default_rng(8)
    width = model.cell.annotation_width + model.target_embedding.shape[1]
    shapes = [width, DEPTH], [model.readout_width, DEPTH], [DEPTH]
    values = (stream.normal(scale=0.5, size=shape).astype(np.float32) for shape in shapes)
    return dict(zip(lexical_memory_file.WEIGHTS, values))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("memories")


@functools.lru_cache(maxsize=2)  # a compiled search takes 100 MB
def translator(name, folder, with_memory=True, **changes):
    model, languages, path = model_of(name), translations.languages(), str(folder / name)
    record = {
        "text": languages.fingerprints,
        "model": weights_digest(model),
        "ranks": 3,
    }
    table = translation_table.from_links(links(), 3)
    lexical_memory_file.write(path, LexicalMemory(table, weights_of(name), record))
    settings = {"beam_width": 3, "lexical_memory": path if with_memory else None, **changes}
    return make_translator(model, languages, model.hparams.replace(**settings), None)


def run(name, folder, lines=LINES, size=32, **changes):
    system = translator(name, folder, **changes)
    system.hparams = system.hparams.replace(infer_batch_size=size)  # not part of the trace
    return list(system.translate(lines, documents=range(len(lines))))


class Reading:
    """A sentence and its memory, by the oracle."""

    def __init__(self, name, text):
        source, _ = translations.languages()
        model = model_of(name)
        plain = Translator(model, translations.languages(), model.hparams)
        [line] = plain.text.encode_lines([text], [0])
        self.sentence = Sentence(model, line)
        forward, backward = {}, {}
        for s, t, count in zip(*(part.tolist() for part in links())):
            forward.setdefault(s, {})[t] = float(count)  # the order is that of p(t|s)
            total = links().counts[links().target == t].sum()
            backward.setdefault(t, {})[s] = count / total
        ids = source.encode(text)
        self.words = oracle.select_entries(ids, forward, {0, 1, 2}, 2 * len(ids), 3)
        annotations = self.sentence.prepared.encoded.annotations[0].numpy()
        self.elements = oracle.memory_elements(
            self.words, ids, annotations, model.target_embedding.numpy(), backward
        )
        self._weights = weights_of(name)

    def mixture(self, p_model, readout, weight=1 / 3):
        betas = oracle.attend(self._weights, readout, self.elements) if self.words else []
        return oracle.mixture(p_model, betas, self.words, weight)


@pytest.mark.quick("rnnsearch")
@pytest.mark.parametrize("name", list(CELLS))
def test_forced_decoding_equals_the_oracle(name, folder):
    system = translator(name, folder)
    forced = system.force(zip(LINES, TARGETS), documents=range(len(LINES)))
    gains = []
    for line, target, result in zip(LINES, TARGETS, forced):
        words = [*translations.languages().target.encode(target), 2]
        if not line:
            continue
        reading = Reading(name, line)
        probabilities, readouts = reading.sentence.forced(words)
        mixed = [reading.mixture(p, q)[word] for p, q, word in zip(probabilities, readouts, words)]
        np.testing.assert_allclose(result.word_log_probs, np.log(mixed), rtol=2e-4, atol=2e-4)
        gains.append(np.abs(np.log(mixed) - np.log(probabilities[range(len(words)), words])).max())
    assert max(gains) > 0.1 and gains[2] < 1e-6  # the memory has no translation of a4


@pytest.mark.quick("rnnsearch")
@pytest.mark.parametrize("name", ["rnnsearch", "luong"])
def test_a_trace_has_the_votes_of_the_translations(name, folder):
    system = translator(name, folder)
    forced = system.force(zip(LINES, TARGETS), EVERYTHING, range(len(LINES)))
    source, target = translations.languages()
    linked = set(zip(*(part.tolist() for part in links()[:2])))
    for line, text, result in zip(LINES, TARGETS, forced):
        memory = result.word_memory
        if not line or line == "a4 a4":  # without a translation
            assert memory.entries == [] and not memory.share.any()
            continue
        reading, words = Reading(name, line), [*target.encode(text), 2]
        probabilities, readouts = reading.sentence.forced(words)
        np.testing.assert_allclose(memory.model, probabilities[range(len(words)), words], rtol=2e-4)
        np.testing.assert_allclose(memory.share, 1 / 3, rtol=1e-6)
        expected = [oracle.attend(weights_of(name), q, reading.elements) for q in readouts]
        np.testing.assert_allclose(memory.weights, expected, rtol=2e-4, atol=1e-6)
        assert [e.word for e in memory.entries] == target.vocabulary.decode(reading.words)
        for entry, word in zip(memory.entries, reading.words):
            ids = dict.fromkeys(i for i in source.encode(line) if (i, word) in linked)
            assert entry.origin == " ".join(source.vocabulary.decode(list(ids)))
        mixed = (1 - memory.share) * memory.model + memory.share * memory.memory
        np.testing.assert_allclose(np.log(mixed), result.word_log_probs, rtol=2e-4, atol=2e-4)


@pytest.mark.quick("3-rnnsearch")
@pytest.mark.parametrize("name", ["rnnsearch", "luong", "ntm"])
@pytest.mark.parametrize("width", [1, 3])
def test_a_search_equals_the_oracle(name, width, folder):
    lines = [LINES[0], LINES[4]]
    for line, [result] in zip(lines, run(name, folder, lines, beam_width=width)):
        reading = Reading(name, line)
        step, limit = reading.sentence.step_with(reading.mixture), reading.sentence.limit
        best = beam.beam_search(step, (), width, limit)[0]
        assert result.tokens == translations.languages().target.vocabulary.decode(list(best.ids))
        assert result.score == pytest.approx(best.score, rel=1e-3, abs=1e-3)


def test_neighbours_in_a_batch_change_nothing(folder):
    expected = [run("rnnsearch", folder, [line])[0] for line in LINES]
    for size in (2, 32):
        translations.assert_same(run("rnnsearch", folder, size=size), expected)
    plain = run("rnnsearch", folder, with_memory=False)
    assert any(a[0].score != b[0].score for a, b in zip(plain, expected))


@pytest.mark.thorough
def test_a_beam_of_one_is_the_greedy_search(folder):
    translations.assert_same(
        run("rnnsearch", folder, beam_width=1), run("rnnsearch", folder, infer_mode="greedy")
    )


def test_a_memory_without_a_share_changes_nothing(folder):
    translations.assert_same(
        run("rnnsearch", folder, lexical_memory_lambda=0.0),
        run("rnnsearch", folder, with_memory=False),
    )


@pytest.mark.thorough
def test_samples_and_documents_in_parts_are_drawn_with_the_memory(folder):
    samples = {"infer_mode": "sample", "num_translations_per_input": 2, "sampling_top_k": 1}
    [sampled] = run("rnnsearch", folder, LINES[:1], **samples)
    [[best]] = run("rnnsearch", folder, LINES[:1], infer_mode="greedy")
    assert [hypothesis.text for hypothesis in sampled] == [best.text] * 2
    system = translator("previous", folder)
    parts, state = [], system.begin_document()
    for line in (LINES[0], LINES[4]):
        [[n_best]], [state] = system.resume([[line]], [state])
        parts.append(n_best)
    translations.assert_same(parts, list(system.translate([LINES[0], LINES[4]], documents=[1, 1])))


def test_another_search_takes_the_same_model_and_memory(folder):
    system = translator("rnnsearch", folder)
    assert type(system) is LexicalTranslator
    for changes, kind in (
        ({"beam_width": 2}, LexicalTranslator),
        ({"lexical_memory": None}, Translator),
    ):
        other = make_translator(
            system.searcher.model, system.languages, system.hparams.replace(**changes), None, system
        )
        assert type(other) is kind
    with_memory = make_translator(
        system.searcher.model, system.languages, system.hparams, None, system
    )
    assert with_memory.memory is system.memory
    assert with_memory.model.plain is system.model.plain is model_of("rnnsearch")


def test_memories_of_other_models_are_refused(folder):
    system = translator("rnnsearch", folder)
    changed = system.hparams.replace(lexical_memory=str(folder / "rnnsearch"))
    with pytest.raises(UserError, match="was learned with other weights than those of this model"):
        make_translator(model_of("luong"), translations.languages(), changed, None)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"cell": "cache"}, "is for models without a cache, and the cell 'cache' has one"),
        ({"neural_cache_size": 3}, "cannot go together with a translation memory or a neural"),
        ({"translation_memory": "a,b"}, "cannot go together with a translation memory or a neur"),
        ({"shortlist": "s"}, "shortlist='s' and lexical_memory='m': a memory proposes words"),
        ({"lexical_memory_lambda": 1.0}, "lexical_memory_lambda: 1.0 is not below 1.0"),
    ],
)
def test_nonsense_is_refused(changes, message):
    with pytest.raises(UsageError) as error:
        small_models.hparams("rnnsearch", **{"lexical_memory": "m", **changes})
    assert message in str(error.value)


def test_an_export_with_a_memory_is_refused():
    with pytest.raises(UsageError, match="lexical_memory='m' is not part of an export"):
        require_fixed(small_models.hparams("rnnsearch", lexical_memory="m"))

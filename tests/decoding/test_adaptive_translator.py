"""A translation memory with the network of adaptive kNN-MT: searches, and what is refused."""

import functools

import numpy as np
import pytest
from helpers import small_models, translations
from helpers.memory_models import (
    KNOWN,
    LINES,
    PAIRS,
    TARGETS,
    datastore_of,
    model_of,
    run,
    sentence_of,
    translator,
    write_files,
)
from oracles import adaptive_neighbors as oracle
from oracles import beam

from tfmann.data import meta_network_file
from tfmann.decoding.forced_readouts import weights_digest
from tfmann.errors import UsageError, UserError
from tfmann.memory import adaptive_neighbors

K, TAU = 4, 6.0
SETTINGS = {
    "translation_memory_pairs": PAIRS,
    "translation_memory_neighbors": K,
    "translation_memory_tau": TAU,
}


@functools.cache
def network():
    """Random weights with which all shares are well above 0 and below 1."""
    stream = np.random.default_rng(3)
    return {
        name: stream.normal(scale=0.15, size=shape).astype(np.float32)
        for name, shape in adaptive_neighbors.network_shapes(K).items()
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("adaptive")


@pytest.fixture(scope="module")
def files(folder):
    return write_files(folder)


@pytest.fixture(scope="module")
def adapted(folder):
    """The settings of a memory with a network for each of the models."""

    def settings(name, **changes):
        path = folder / f"{name}.json"
        record = {"settings": SETTINGS, "weights": weights_digest(model_of(name))}
        meta_network_file.save(str(path), network(), record)
        return {**SETTINGS, "translation_memory_adaptive": str(path), **changes}

    return settings


def mixture_of(name, line):
    w_1, b_1, w_2, b_2 = network().values()
    weights = (w_1.T, b_1[0], w_2.T, b_2[0])
    entries = datastore_of(name, line)
    return functools.partial(
        oracle.mixture, entries=entries, greatest=K, temperature=TAU, weights=weights
    )


def test_forced_decoding_equals_the_oracle(files, adapted):
    system = translator("luong", files, **adapted("luong"))
    forced = system.force(zip(LINES, TARGETS), documents=range(len(LINES)))
    gains = []
    for line, target, result in zip(LINES, TARGETS, forced):
        if not line:
            continue
        words = [*translations.languages().target.encode(target), 2]
        probabilities, readouts = sentence_of("luong", line).forced(words)
        mixture = mixture_of("luong", line)
        mixed = [mixture(p, q)[word] for p, q, word in zip(probabilities, readouts, words)]
        np.testing.assert_allclose(result.word_log_probs, np.log(mixed), rtol=5e-4, atol=5e-4)
        gains.append(np.abs(np.log(mixed) - np.log(probabilities[range(len(words)), words])).max())
    assert max(gains) > 0.1 and gains[2] < 1e-6  # the memory has nothing like "a4 a4"


@pytest.mark.quick("3")
@pytest.mark.parametrize("width", [1, 3])
def test_a_search_equals_the_oracle(width, files, adapted):
    lines = [LINES[1], LINES[4]]
    results = run("rnnsearch", files, lines, beam_width=width, **adapted("rnnsearch"))
    for line, [result] in zip(lines, results):
        sentence, mixture = sentence_of("rnnsearch", line), mixture_of("rnnsearch", line)
        best = beam.beam_search(sentence.step_with(mixture), (), width, sentence.limit)[0]
        assert result.tokens == translations.languages().target.vocabulary.decode(list(best.ids))
        assert result.score == pytest.approx(best.score, rel=1e-3, abs=1e-3)


def test_neighbours_in_a_batch_change_nothing(files, adapted):
    settings = adapted("rnnsearch")
    expected = [run("rnnsearch", files, [line], **settings)[0] for line in LINES]
    for size in (2, 32):
        translations.assert_same(run("rnnsearch", files, size=size, **settings), expected)
    without = run("rnnsearch", files, **SETTINGS)
    assert any(a[0].score != b[0].score for a, b in zip(without, expected))


@pytest.mark.thorough
def test_greedy_search_and_cold_samples_are_a_beam_of_one(files, adapted):
    settings = adapted("rnnsearch")
    expected = run("rnnsearch", files, beam_width=1, **settings)
    translations.assert_same(run("rnnsearch", files, infer_mode="greedy", **settings), expected)
    sampled = run("rnnsearch", files, infer_mode="sample", sampling_top_k=1, **settings)
    assert translations.texts(sampled) == translations.texts(expected)


def test_a_sentence_without_hits_is_translated_by_the_model_alone(files, adapted):
    lines = ["a4 a4", "nowhere"]
    result = run("rnnsearch", files, lines, **adapted("rnnsearch"))
    expected = run("rnnsearch", None, lines)
    assert translations.texts(result) == translations.texts(expected)
    assert translations.scores(result) == translations.scores(expected)


def test_neighbours_of_pairs_are_those_of_the_oracle(files, adapted):
    system = translator("rnnsearch", files, **adapted("rnnsearch"))
    found = list(system.neighbors([("a9 a14", "b5"), ("a4", "b3"), KNOWN[0]], K))
    _, readouts = sentence_of("rnnsearch", "a9 a14").forced([5, 2])
    for step, query in enumerate(readouts):
        expected = oracle.nearest(query, datastore_of("rnnsearch", "a9 a14"), K)
        np.testing.assert_allclose(found[0].distances[step], [d for d, _ in expected], rtol=1e-3)
        assert found[0].words[step].tolist() == [word for _, word in expected]
    assert (found[1].words == -1).all() and len(found[2].words) == 5


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"translation_memory_neighbors": 8}, "other settings than .*neighbors=8 .*: give "
         "--translation_memory_pairs=3 --translation_memory_neighbors=4 --translation_memory_tau"),
        ({"translation_memory_tau": 7.5}, "other settings than .*--translation_memory_tau=7.5"),
        ({"translation_memory_pairs": 2}, "other settings than --translation_memory_pairs=2"),
        ({"translation_memory_adaptive": "absent.json"}, "no such file: absent.json"),
    ],
)  # fmt: skip
def test_other_settings_than_those_of_training_are_refused(changes, message, files, adapted):
    with pytest.raises(UserError, match=message):
        translator("luong", files, **adapted("luong", **changes))


def test_a_network_of_other_weights_is_refused(files, adapted):
    adapted("luong")
    settings = adapted("rnnsearch")
    with pytest.raises(UserError, match="readouts of other weights than those of this model"):
        translator("luong", files, **settings)


def test_a_damaged_network_is_refused(files, adapted, folder):
    settings = adapted("luong", translation_memory_adaptive=str(folder / "damaged.json"))
    good = (folder / "luong.json").read_text()
    for text in (good.replace("[", "[1,", 1), "{}", "no network"):
        (folder / "damaged.json").write_text(text)
        with pytest.raises(UserError, match="damaged.json is damaged or no network of this versi"):
            translator("luong", files, **settings)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"translation_memory": None}, "translation_memory_adaptive='n' needs a translation_mem"),
        ({"translation_memory_lambda": 0.5}, "has a lambda of its own: leave translation_memory_l"),
    ],
)
def test_nonsense_is_refused(changes, message):
    settings = {"translation_memory": "a,b", "translation_memory_adaptive": "n", **changes}
    with pytest.raises(UsageError, match=message):
        small_models.hparams("rnnsearch", **settings)

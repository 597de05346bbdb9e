"""Lines and pairs of invented words, and translators of large random weights for them."""

import functools

import numpy as np
from helpers import small_models

from tfmann.data.subword import WordSegmenter
from tfmann.data.text_encoder import LanguagePair, TextEncoder
from tfmann.data.vocab import Vocabulary
from tfmann.decoding.translator import Translator

SOURCE_WORDS = [f"a{i}" for i in range(3, small_models.SOURCE_SIZE)]
TARGET_WORDS = [f"b{i}" for i in range(3, small_models.TARGET_SIZE)]
LINES = [
    "a3 a9 a14 a5 a20 a7",
    "",
    "a12",
    "a4 a4 a4",
    " \t ",
    "a8 nowhere a19 a3 a11 a16 a21",
    "a12",
    "a17 a6",
    "a22 a13 a10 a15 a18",
]
PAIRS = [
    ("a3 a9 a14", "b5 b6"),
    ("a12", "b5 b6 b18 b4"),
    ("", "b3"),
    ("a7 a8", ""),
    ("a4 a4", "b5 unheard-of"),
    ("a8 nowhere a19 a3 a11", "b11 b3 b9"),
]
BEAM = {"beam_width": 3, "num_translations_per_input": 3}


def languages():
    segmenter = WordSegmenter()
    sides = [
        TextEncoder(Vocabulary.from_tokens(words), segmenter)
        for words in (SOURCE_WORDS, TARGET_WORDS)
    ]
    return LanguagePair(*sides)


@functools.cache
def model(variant, **settings):
    """A model with large random weights, for which `</s>` is likely at some steps."""
    sizes = {"init_weight": 1.0, "embedding_init_weight": 3.0, "random_seed": 1}
    built = small_models.model(variant, **{**sizes, **settings})
    kernel = built.projection_kernel.numpy()
    kernel[:, 2] *= 3.0
    built.projection_kernel.assign(kernel)
    return built


@functools.lru_cache(maxsize=3)  # a compiled search takes 100 MB
def translator(variant="ntm", **settings):
    """A translator; the same settings give the same one, traced once."""
    built = model(variant, **settings)
    return Translator(built, languages(), built.hparams)


def run(lines, size=32, chunk=0, with_attention=False, **settings):
    system = translator(**{**BEAM, **settings})
    system.hparams = system.hparams.replace(infer_batch_size=size)  # not part of the trace
    return list(system.translate(lines, with_attention, chunk))


def texts(results):
    return [[translation.text for translation in n_best] for n_best in results]


def scores(results):
    return [[translation.score for translation in n_best] for n_best in results]


def assert_same(actual, expected, atol=3e-5):
    """Compares the texts, and the scores to `atol`."""
    assert texts(actual) == texts(expected)
    np.testing.assert_allclose(scores(actual), scores(expected), atol=atol)

"""A translation memory in files, models of several cells, and its datastores by plain loops."""

import functools

from helpers import translations
from helpers.sentences import Sentence
from oracles import retrieval

from tfmann.data import text_files
from tfmann.decoding.translator import Translator
from tfmann.decoding.translator_choice import make_translator

MEMORY = [
    ("a3 a9 a14 a5", "b5 b6 b7 b8"),
    ("a12 a3", "b11 b3"),
    ("a9 a9 a20 a7", "b9 b9 unheard-of b4 b5"),
    ("", "b3"),
    ("a17 a6 a3", "b17 b16 b15 b14"),
    ("a3 a9 a14 a6", "b5 b6 b7 b9"),
]
KNOWN = [pair for pair in MEMORY if pair[0]]  # in the order of their numbers
LINES = ["a3 a9 a14 a5", "a12", "", "a4 a4", "a9 a14 nowhere a20", "a17 a6 a3"]
TARGETS = ["b5 b6 b5", "b11 b3", "b4", "b6 b5 b18", "b9 unheard-of b3 b6", "b17"]
CELLS = {
    "luong": {"cell": "luong", "unit_type": "lstm"},
    "rnnsearch": {"cell": "rnnsearch"},
    "kvmematt": {"cell": "kvmematt"},
    "previous": {"cell": "previous"},
    "ntm": {"cell": "ntm", "encoder_type": "memory"},
}
PAIRS, NEIGHBORS, TAU = 3, 2, 9.0
SETTINGS = {
    "translation_memory_pairs": PAIRS,
    "translation_memory_neighbors": NEIGHBORS,
    "translation_memory_tau": TAU,
}


def write_files(folder):
    """Writes the memory; returns it as the setting names it."""
    for side, name in enumerate(("tm.src", "tm.tgt")):
        text_files.write_lines(folder / name, [pair[side] for pair in MEMORY])
    return f"{folder / 'tm.src'},{folder / 'tm.tgt'}"


def model_of(name):
    settings = {"unit_type": "gru", "projection_bias": True, **CELLS[name]}
    return translations.model("rnnsearch", **settings)


@functools.lru_cache(maxsize=3)  # a compiled search takes 100 MB
def translator(name, files, **changes):
    model = model_of(name)
    settings = {"beam_width": 3, "translation_memory": files, **SETTINGS, **changes}
    return make_translator(model, translations.languages(), model.hparams.replace(**settings), None)


def run(name, files, lines=LINES, size=32, **changes):
    system = translator(name, files, **changes)
    system.hparams = system.hparams.replace(infer_batch_size=size)  # not part of the trace
    return list(system.translate(lines, documents=range(len(lines))))


def sentence_of(name, text):
    model = model_of(name)
    plain = Translator(model, translations.languages(), model.hparams)
    [line] = plain.text.encode_lines([text], [0])
    return Sentence(model, line)


def datastore_of(name, line):
    """The entries of a line, by loops over the whole memory and the model alone."""
    source, target = translations.languages()
    sources = [[word if word else -number for number, word in enumerate(source.encode(x), start=5)]
             for x, _ in KNOWN]  # fmt: skip
    query = [word for word in source.encode(line) if word]
    if len(query) < len(line.split()):  # an unknown word is like no other
        query = [word or -1 for word in source.encode(line)]
    entries = []
    for number in retrieval.retrieve(query, sources, PAIRS, 64):
        words = [*target.encode(KNOWN[number][1]), 2]
        _, readouts = sentence_of(name, KNOWN[number][0]).forced(words)
        entries += [(key, word) for key, word in zip(readouts, words) if word]
    return entries

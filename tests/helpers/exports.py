"""Models exported by the command line, called, and compared with the command line's output."""

import json
import os
import random
import subprocess
import sys

import numpy as np
from helpers.command_line import CAP, WORDS, command, write_model

from tfmann import api, nmt
from tfmann.config import cell_spec
from tfmann.data import text_files
from tfmann.evaluation.alignment import format_pharaoh

N_BEST = ["--num_translations_per_input=3"]
GREEDY = ["--infer_mode=greedy", "--num_translations_per_input=1"]
SIZES = {"num_memory_locations": 6, "memory_unit_size": 4, "read_heads": 2}
RNNSEARCH = {"unit_type": "gru", "projection_bias": True}

# every family of cells: the variant of small_models.py, changed settings, and search settings
FAMILIES = {
    "luong": ("luong", {}, N_BEST),
    "luong-greedy": ("luong-gru", {"append_source_eos": False}, GREEDY),
    "penalties": (
        "luong-tanh", {"src_max_len_infer": 6},
        [*N_BEST, "--length_penalty_weight=0.7", "--coverage_penalty_weight=0.3"],
    ),
    "ntm-attention": ("ntm-heads", {}, N_BEST),
    "ntm": ("luong", {"cell": "ntm", "encoder_type": "memory", **SIZES}, N_BEST),
    "dnc": ("luong", {"cell": "dnc", "encoder_type": "memory", **SIZES}, GREEDY),
    "mad": ("luong", {"cell": "mad", **SIZES}, N_BEST),
    "rnnsearch": ("rnnsearch", {}, N_BEST),
    "coverage": ("coverage", {}, N_BEST),
    "coverage-neural": ("coverage-neural", {}, GREEDY),
    "memdec": ("memdec", {}, N_BEST),
    "past-future": ("past-future", {}, N_BEST),
    "mematt": ("mematt", {}, GREEDY),
    "kvmematt": ("kvmematt-3", {}, N_BEST),
    "transformer": ("transformer", {}, N_BEST),
    "kvmematt-transformer": ("transformer-rewriting", {}, N_BEST),
    "key-value": ("key-value", {}, N_BEST),
    "attn": ("key-value-attn", {}, GREEDY),
    "modifying-iw": ("key-value-iw", {}, N_BEST),
    "cache": ("rnnsearch", {"cell": "cache", "cache_size": 6, **RNNSEARCH}, N_BEST),
    "shallow": (
        "rnnsearch", {"cell": "cache", "cache_size": 6, "cache_fusion": "shallow", **RNNSEARCH},
        GREEDY,
    ),
    "summary": ("rnnsearch", {"cell": "summary", **RNNSEARCH}, N_BEST),
    "previous": ("rnnsearch", {"cell": "previous", **RNNSEARCH}, GREEDY),
}  # fmt: skip
DOCUMENTS = ("cache", "shallow", "summary", "previous")

_ODD = [
    "unbekannt", "</s>", "<unk>", "שלום", "مرحبا", "\u202e", "a\u2028b", "\0", "\ufeffder", "😀",
]  # fmt: skip


def draw_lines(count=200, seed=1):
    """Lines of invented sentences: long ones, blank ones, unknown words, words from the right."""
    draw = random.Random(seed)
    lines = ["", " \t ", "\u3000\x1f", " ".join(WORDS * 5), "unbekannt", "der", " der\thund  "]
    while len(lines) < count:
        words = [
            draw.choice(_ODD if draw.random() < 0.15 else WORDS) for _ in range(draw.randint(0, 9))
        ]
        lines.append(" ".join(words))
    return lines


def export(folder, name):
    """Writes a model of a family and exports it; returns both folders and the search's flags."""
    variant, changes, flags = FAMILIES[name]
    (folder / name).mkdir()
    model = write_model(folder / name, variant, **changes)
    return model, export_model(model, flags), flags


def export_model(model, flags=()):
    """Exports a model to where the command line does by itself."""
    assert nmt.main(command(model, *flags, mode="export")) == 0
    return model / "export"


def translate_by_command(model, lines, folder, flags=(), documents=None):
    """For each line its translations and scores, and the links of each if the cell has them."""
    traced = cell_spec(json.loads((model / "hparams.json").read_text())["cell"]).has_alignments
    text_files.write_lines(folder / "in", lines)
    paths = {"inference_input_file": folder / "in", "inference_output_file": folder / "out"}
    if traced:
        paths["alignment_file"] = folder / "links"
    if documents is not None:
        text_files.write_lines(folder / "docs", map(str, documents))
        paths["inference_document_file"] = folder / "docs"
    assert nmt.main(command(model, *flags, **paths)) == 0
    translations = [[] for _ in lines]
    links = list(text_files.iter_lines(folder / "links")) if traced else None
    for number, line in enumerate(text_files.iter_lines(folder / "out")):
        if "--num_translations_per_input=3" in flags:
            index, text, score = line.split(" ||| ")
            score = float(score)
        else:
            index, text, score = number, line, None
        translations[int(index)].append((text, score, links[number] if traced else None))
    return translations


def assert_same(answer, expected):
    """Checks the answers of an export against those of the command line."""
    assert len(answer["translations"]) == len(expected)
    for row, n_best in enumerate(expected):
        length = answer["source_lengths"][row]
        source = [word.decode() for word in answer["source_tokens"][row][:length]]
        for rank, (text, score, links) in enumerate(n_best):
            assert answer["translations"][row][rank].decode() == text, (row, rank)
            if score is not None:
                np.testing.assert_allclose(answer["scores"][row][rank], score, atol=7e-5)
            steps = answer["lengths"][row][rank]
            tokens = [word.decode() for word in answer["tokens"][row][rank][:steps]]
            assert len(tokens) <= CAP and (not tokens or tokens[-1] == "</s>")
            if links is not None:
                attention = answer["alignments"][row][rank]
                assert not attention[steps:].any() and not attention[:, length:].any()
                cut = attention[:steps, :length]
                assert format_pharaoh(api.links(cut, source, tokens) if tokens else []) == links
        for rank in range(len(n_best), answer["scores"].shape[1]):  # the search found fewer
            assert answer["translations"][row][rank] == b""
            assert answer["scores"][row][rank] == -np.inf
    assert ("alignments" in answer) == (expected[0][0][2] is not None)


# A program that loads neither tfmann nor tensorflow-addons, which it checks at its end.
_ASK = """
import json, sys
import numpy as np, tensorflow as tf
for number, question in enumerate(json.load(open(sys.argv[1]))):
    for name in question["imports"]:
        __import__(name)
    signatures = tf.saved_model.load(question["export"]).signatures
    run, state = signatures[question["signature"]], {}
    if question["signature"] == "document":
        state = signatures["begin"](rows=tf.constant(len(question["batches"][0])))
    for step, lines in enumerate(question["batches"]):
        answer = run(lines=tf.constant(lines, tf.string), **state)
        state = {name: answer[name] for name in state}
        arrays = {name: value.numpy() for name, value in answer.items()}
        texts = {name: a.astype("S") for name, a in arrays.items() if a.dtype == object}
        np.savez(f"{question['answers']}-{step}.npz", **{**arrays, **texts})
exec(sys.argv[2])
assert not {"tfmann", "tensorflow_addons", "tf_keras"} & set(sys.modules)
print("tensorflow_text" in sys.modules)
"""


def answer_in_a_process(folder, questions, last=""):
    """Asks exports in a program of its own, which runs `last` too.

    Args:
      folder: for the answers.
      questions: export, signature, batches of lines, imports.
      last: a program.

    Returns:
      the answers of each question, a batch each; and what was printed.
    """
    names = ("export", "signature", "batches", "imports")
    body = [
        {**dict(zip(names, question)), "answers": str(folder / str(number))}
        for number, question in enumerate(questions)
    ]
    (folder / "questions").write_text(json.dumps(body))
    done = subprocess.run(
        [sys.executable, "-c", _ASK, str(folder / "questions"), last],
        cwd=folder, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}, text=True,
        capture_output=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answers = [
        [dict(np.load(f"{entry['answers']}-{step}.npz")) for step in range(len(entry["batches"]))]
        for entry in body
    ]
    return answers, done.stdout.splitlines()

"""`tfmann inspect`: the statistics of a model over files, and what is refused."""

import json

import numpy as np
import pytest
from helpers.command_line import fails, write_model

from tfmann import api
from tfmann.cells.diagnostics import VECTORS
from tfmann.cli import inspection
from tfmann.cli.main import main
from tfmann.evaluation.agreement import agreement_statistics
from tfmann.evaluation.head_statistics import Key, head_statistics
from tfmann.evaluation.trace import Trace

pytestmark = pytest.mark.usefixtures("untraced_module")

SOURCES = ["der hund", "", "größe một chó und", "die katze 。 und", "der der und", "hund"]
TARGETS = ["DER HUND", "", "CHÓ", "DIE KATZE SIEHT UND", "UND 。", "DER UND"]
DOCUMENTS = [0, 0, 0, 1, 1, 2]
PURE_MANN = {
    "variant": "luong-gru", "unit_type": "lstm", "cell": "ntm", "encoder_type": "memory",
    "bridge": "zero", "num_layers": 1, "num_memory_locations": 5, "memory_unit_size": 4,
}  # fmt: skip


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    for name, lines in (("src", SOURCES), ("tgt", TARGETS), ("docs", DOCUMENTS)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def pure_mann(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("ntm"), **PURE_MANN)


def read_record(path):
    return json.loads(path.read_text(encoding="utf-8"))


def means(record, weights=None):
    entries = record["statistics"]
    return {
        Key(entry["head"], entry["phase"], entry["name"]): (entry[weights] if weights else entry)[
            "mean"
        ]
        for entry in entries
    }


@pytest.mark.thorough
def test_a_pure_mann_over_a_reference(pure_mann, text, tmp_path, capsys):
    output = tmp_path / "addresses.json"
    command = [f"--model={pure_mann}", f"--input={text / 'src'}", f"--reference={text / 'tgt'}"]
    assert main(["inspect", *command, f"--output={output}", "--sentences=4"]) == 0
    record = read_record(output)
    assert (record["sentences"], record["sentences_of_file"], record["unit"]) == (4, 5, "sentence")
    assert (record["cell"], record["forced"], record["untrained_seed"]) == ("ntm", "reference", 5)
    assert {"revision", "hardware", "versions"} <= set(record)
    model = api.load(str(pure_mann))
    pairs = [pair for pair in zip(SOURCES, TARGETS) if pair[0]][:4]
    for weights, inspected in ((None, model), ("untrained", model.untrained())):
        by_sentence = [
            head_statistics(Trace(forced)) for forced in inspected.translator.force(pairs, VECTORS)
        ]
        for key, mean in means(record, weights).items():
            values = [statistics[key] for statistics in by_sentence if key in statistics]
            assert mean == pytest.approx(np.mean(values), abs=2e-4), key
    captured = capsys.readouterr()
    assert "NTMCell over a reference of 4 of 5 sentences" in captured.out
    assert "write_head_0, while the source is read" in captured.out
    assert "untrained" in captured.out and "trained weights: 4 of 4 sentences" in captured.err


def test_untrained_weights_are_those_that_a_run_starts_from(pure_mann):
    model = api.load(str(pure_mann))
    first, second = (model.untrained().translator.searcher.model for _ in range(2))
    for a, b in zip(first.trainable_variables, second.trainable_variables):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert "untrained" in repr(model.untrained())


def test_the_attention_of_another_run(pure_mann, text, tmp_path, capsys):
    other = write_model(tmp_path, "luong")
    output = tmp_path / "agreement.json"
    command = [f"--model={pure_mann}", f"--input={text / 'src'}", f"--reference={text / 'tgt'}"]
    command += [f"--attention_of={other}", f"--output={output}"]
    assert inspection.main(command) == 0
    record = read_record(output)
    assert (record["cell"], record["attention_of"]) == ("ntm", "luong")
    pairs = [pair for pair in zip(SOURCES, TARGETS) if pair[0]]
    model, of_other = (
        run.translator.force(pairs, VECTORS) for run in (api.load(str(pure_mann)), api.load(other))
    )
    untrained = api.load(str(pure_mann)).untrained().translator.force(pairs, VECTORS)
    for weights, traces in ((None, model), ("untrained", untrained)):
        expected = [
            agreement_statistics(Trace(a), Trace(b)) for a, b in zip(traces, of_other)
        ]  # over the trained weights of the other
        measured = means(record, weights)
        assert len(expected[0]) == 6
        for key in expected[0]:
            mean = np.mean([statistics[key] for statistics in expected])
            assert measured[key] == pytest.approx(mean, abs=2e-4), key
    out = capsys.readouterr().out
    assert "NTMCell, compared with LuongCell, over a reference of 5 of 5 sentences" in out
    assert "agreement, while the target is written\n  weight in common" in out


@pytest.mark.thorough
def test_a_cache_over_its_own_translations_counts_documents(text, tmp_path, capsys):
    folder = write_model(tmp_path, "rnnsearch", cell="cache", cache_size=4)
    command = [f"--model={folder}", f"--input={text / 'src'}", f"--documents={text / 'docs'}"]
    first, second = tmp_path / "first.json", tmp_path / "again.json"
    assert inspection.main([*command, f"--output={first}", "--trained_only"]) == 0
    err = capsys.readouterr().err
    assert "translating 5 sentences" in err and "3 documents: too few" in err
    record = read_record(first)
    assert (record["unit"], record["units"], record["forced"]) == ("document", 3, "translations")
    assert len(record["recency"]) == 4 and "recency_untrained" not in record
    names = {key.name for key in means(record)}
    assert {"recent_half", "exact", "gate", "entropy"} <= names
    assert not any("untrained" in entry for entry in record["statistics"])
    model = api.load(str(folder))
    real = [number for number, line in enumerate(SOURCES) if line]
    translations = model.translate(
        [SOURCES[i] for i in real], documents=[DOCUMENTS[i] for i in real]
    )
    lines = [n_best[0].text for n_best in translations]
    output = tmp_path / "output"
    output.write_text("".join(f"{lines.pop(0) if line else ''}\n" for line in SOURCES), "utf-8")
    command += [f"--translations={output}", f"--output={second}", "--trained_only"]
    assert inspection.main(command) == 0
    for key, mean in means(read_record(second)).items():
        assert mean == pytest.approx(means(record)[key], abs=2e-4), key


def test_the_gain_of_a_cache_is_over_the_same_sentence_alone(text, tmp_path):
    folder = write_model(tmp_path, "rnnsearch", cell="cache", cache_size=4)
    output = tmp_path / "cache.json"
    command = [f"--model={folder}", f"--input={text / 'src'}", f"--reference={text / 'tgt'}"]
    command += [f"--documents={text / 'docs'}", f"--output={output}", "--trained_only"]
    assert inspection.main(command) == 0
    model = api.load(str(folder))
    pairs = [pair for pair in zip(SOURCES, TARGETS) if pair[0]]
    documents = [document for document, source in zip(DOCUMENTS, SOURCES) if source]
    gains = []
    for number, forced in enumerate(model.translator.force(pairs, documents=documents)):
        (alone,) = model.translator.force([pairs[number]])
        if number and documents[number] == documents[number - 1]:
            gains.append(np.mean(forced.word_log_probs - alone.word_log_probs))
        else:  # nothing is in the cache
            assert forced.log_prob == pytest.approx(alone.log_prob, abs=1e-4)
    measured = means(read_record(output))[Key("cache", "target", "word_gain")]
    assert len(gains) == 2 and abs(np.mean(gains)) > 0.01
    assert measured == pytest.approx(np.mean(gains), abs=2e-4)


def test_a_blank_line_ends_a_document(text):
    args = inspection._parser().parse_args(["--model=m", f"--input={text / 'src'}"])
    read = inspection._read(args)
    assert read.documents == [0, 1, 1, 1, 1] and read.targets is None and "" not in read.sources


def test_a_document_number_that_comes_again_is_another_document(text, tmp_path):
    """As in training; the document between two of the same number may have blank lines alone."""
    (tmp_path / "docs").write_text("4\n7\n4\n4\n5\n4\n")
    command = ["--model=m", f"--input={text / 'src'}", f"--documents={tmp_path / 'docs'}"]
    read = inspection._read(inspection._parser().parse_args(command))
    assert read.documents == [0, 2, 2, 4, 5]  # the line that each begins with


def test_parts_cut_no_document(monkeypatch):
    monkeypatch.setattr(inspection, "_CHUNK", 2)
    assert list(inspection._chunks([0, 0, 0, 1, 2, 2, 3], 7)) == [(0, 3), (3, 6), (6, 7)]
    assert list(inspection._chunks(None, 5)) == [(0, 2), (2, 4), (4, 5)]


def test_mistakes_are_one_line(pure_mann, text, tmp_path, capsys):
    short = tmp_path / "short"
    short.write_text("0\n", "utf-8")
    blank = tmp_path / "blank"
    blank.write_text("\n\n", "utf-8")
    model_and_input = [f"--model={pure_mann}", f"--input={text / 'src'}"]
    for argv, status, words in (
        ([f"--model={tmp_path}", f"--input={text / 'src'}"], 1, "no trained model"),
        ([*model_and_input, "--sentences=0"], 2, "--sentences=0: expected 1 or more"),
        ([*model_and_input, f"--output={text / 'src'}"], 2, "the same file"),
        ([*model_and_input, f"--output={pure_mann / 'hparams.json'}"], 2, "the model's hparams.js"),
        ([*model_and_input, f"--documents={short}"], 1, "unequal line counts"),
        (
            [*model_and_input, f"--documents={text / 'docs'}"],
            2,
            "--documents has no effect: the ce",
        ),
        ([*model_and_input, f"--reference={short}"], 1, "unequal|has \\d+"),
        ([*model_and_input, f"--attention_of={tmp_path}"], 1, "no trained model"),
        ([f"--model={pure_mann}", f"--input={blank}"], 1, "no sentence"),
        ([*model_and_input, f"--output={tmp_path / 'none' / 'a.json'}"], 1, "there is no folder"),
        ([*model_and_input, f"--output={tmp_path}"], 1, "is a folder; expected the name of a file"),
    ):
        fails(argv, capsys, status, words, inspection.main)

"""The command line with documents: ids or blank lines, files or standard input."""

import json
import subprocess

import pytest
from helpers.command_line import command, fails, fails_after_note, run_in_a_process, write_model

from tfmann import api, nmt
from tfmann.cli import main
from tfmann.data import text_files
from tfmann.errors import UsageError

pytestmark = pytest.mark.usefixtures("untraced_module")

LINES = ["der hund", "die katze sieht", "hund", "größe một chó", "und die", "katze"]
IDS = ["3", "3", "3", "8", "8", "8"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    changes = {"cell": "cache", "cache_size": 4, "unit_type": "gru", "projection_bias": True}
    return write_model(tmp_path_factory.mktemp("model"), "rnnsearch", **changes)


@pytest.fixture
def folder(tmp_path):
    text_files.write_lines(tmp_path / "in", LINES)
    text_files.write_lines(tmp_path / "docs", IDS)
    text_files.write_lines(tmp_path / "blank", [*LINES[:3], "", *LINES[3:]])
    return tmp_path


def run(model, out, **flags):
    """The lines that a command writes."""
    assert nmt.main(command(model, inference_output_file=out, **flags)) == 0
    return out.read_text(encoding="utf-8").split("\n")[:-1]


def scores(model, folder, **flags):
    """The translations with their log-probabilities."""
    text_files.write_lines(folder / "found", run(model, folder / "out", **flags))
    lines = (folder / "found").read_text(encoding="utf-8").split("\n")[:-1]
    return [line.split(" ||| ")[1:] for line in lines]


def are_alike(rows, expected):
    """The same translations with the same scores, but for a rounding in other batches."""
    texts = [text for text, _ in rows] == [text for text, _ in expected]
    difference = [
        float(score) - float(expected_score)
        for (_, score), (_, expected_score) in zip(rows, expected)
    ]
    return texts and max(map(abs, difference)) < 2e-4


@pytest.mark.thorough
def test_ids_and_blank_lines_say_the_same(model, folder):
    n_best = {"num_translations_per_input": 2}
    by_id = scores(
        model, folder, inference_input_file=folder / "in", inference_document_file=folder / "docs",
        **n_best,
    )  # fmt: skip
    by_blank = scores(model, folder, inference_input_file=folder / "blank", **n_best)
    assert by_blank[6:8] == [["", "0.0000"]] * 2  # the blank line's own
    assert are_alike(by_blank[:6] + by_blank[8:], by_id)
    as_one = scores(model, folder, inference_input_file=folder / "in", **n_best)
    assert are_alike(as_one[:6], by_id[:6]) and not are_alike(as_one[6:], by_id[6:])


@pytest.mark.thorough
def test_standard_input_answers_as_a_file_does(model, folder):
    expected = run(model, folder / "out", inference_input_file=folder / "blank")
    with open(folder / "blank", "rb") as stream:
        result = run_in_a_process(
            command(model, inference_input_file="-"), stdin=stream, stdout=subprocess.PIPE
        )
    assert result.returncode == 0, result.stderr
    assert result.stdout.decode().split("\n")[:-1] == expected


def test_scores_of_translations_are_those_of_the_search(model, folder):
    flags = {
        "inference_input_file": folder / "in", "inference_document_file": folder / "docs",
    }  # fmt: skip
    texts = run(model, folder / "best", **flags)
    searched = scores(model, folder, **flags, num_translations_per_input=2)[::2]
    assert [text for text, _ in searched] == texts
    forced = run(
        model, folder / "scored", **flags, mode="score", inference_ref_file=folder / "best"
    )
    assert [float(line) for line in forced] == pytest.approx(
        [float(score) for _, score in searched], abs=1e-4
    )
    words = run(
        model, folder / "words", **flags, mode="score", inference_ref_file=folder / "best",
        word_scores=True,
    )  # fmt: skip
    assert [line.split("\t")[0] for line in words] == forced
    for line, text, total in zip(words, texts, forced):
        tokens, log_probs = zip(*(field.rsplit(" ", 1) for field in line.split("\t")[1:]))
        assert [*tokens] == [*text.split(), "</s>"]
        assert sum(map(float, log_probs)) == pytest.approx(float(total), abs=1e-3)
    links = run(model, folder / "links", **flags, mode="align", inference_ref_file=folder / "best")
    assert len(links) == len(LINES)
    body = "\n".join(
        run(model, folder / "eval", **flags, mode="eval", inference_ref_file=folder / "best")
    )  # noqa: E501
    assert json.loads(body)["scores"]["input"][0]["value"] == pytest.approx(100.0)


def test_documents_are_refused_by_what_cannot_use_them(folder, tmp_path_factory, capsys):
    plain = write_model(tmp_path_factory.mktemp("plain"))
    argv = command(
        plain, inference_input_file=folder / "in", inference_document_file=folder / "docs"
    )
    fails(argv, capsys, 2, "every sentence by itself")
    argv = command(plain, mode="eval", inference_document_file=folder / "docs")
    fails(argv, capsys, 2, "describes the lines of --inference_input_file: give both")


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (IDS[:4], "unequal line counts: .*in has 6, .*docs has 4"),
        ([*IDS, "9"], "unequal line counts: .*in has 6, .*docs has 7"),
        ([*IDS[:2], "x", *IDS[3:]], "docs, line 3: expected the document's id"),
    ],
)
def test_ids_must_fit_the_lines(ids, words, model, folder, capsys):
    text_files.write_lines(folder / "docs", ids)
    argv = command(
        model, inference_input_file=folder / "in", inference_document_file=folder / "docs",
        inference_output_file=folder / "never",
    )  # fmt: skip
    fails_after_note(argv, capsys, 1, words)
    assert not (folder / "never").exists()


REFERENCES = ["DER HUND", "KATZE SIEHT DIE", "HUND", "CHÓ", "DIE UND", "KATZE 。"]


@pytest.mark.thorough
def test_the_history_of_the_references_and_of_another_document(model, folder, capsys):
    text_files.write_lines(folder / "ref", REFERENCES)
    flags = {"inference_input_file": folder / "in", "inference_document_file": folder / "docs"}
    with_own_history = run(model, folder / "own", **flags)
    assert run(model, folder / "default", document_history="own", **flags) == with_own_history
    loaded = api.load(str(model))
    pairs = list(zip(LINES, REFERENCES))
    documents = list(map(int, IDS))
    expected = loaded.translate(LINES, documents=documents, history=pairs)
    flags["inference_ref_file"] = folder / "ref"
    texts = run(model, folder / "reference", document_history="reference", **flags)
    assert texts == [n_best[0].text for n_best in expected]
    assert "BLEU" in capsys.readouterr().err
    swapped = list(
        zip(LINES[3:] + LINES[:3], with_own_history[3:] + with_own_history[:3])
    )  # the only other document
    expected = list(loaded.translate(LINES, documents=documents, history=swapped))
    argv = ["translate", f"--model={model}", f"--input={folder / 'in'}", "--document_history=other"]
    argv += [f"--documents={folder / 'docs'}", f"--output={folder / 'other'}"]
    for seed in ([], ["--document_history_seed=7"]):
        assert main.main([*argv, *seed]) == 0
        texts = (folder / "other").read_text(encoding="utf-8").split("\n")[:-1]
        assert texts == [n_best[0].text for n_best in expected]
    assert texts[1:] != with_own_history[1:], "the history changes nothing: it tests nothing"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"document_history": "reference"}, "reference needs --inference_ref_file, the reference"),
        ({"document_history": "mine"}, "document_history.*own"),
        ({"document_history_seed": 2}, "document_history_seed applies only to --d"),
        ({"document_history": "other", "document_history_seed": -1}, "seed=-1: expected 0 or more"),
        ({"document_history": "other", "inference_input_file": "-"}, "give a file, not standard"),
        (
            {"document_history": "other", "num_workers": 2, "inference_output_file": "x"},
            "needs all lines in one job: give --num_workers=1",
        ),
        ({"document_history": "own", "mode": "eval"}, "--mode=eval does not use --document_hist"),
    ],
)
def test_a_history_that_cannot_be_given_is_refused(flags, words, model, folder, capsys):
    fails(command(model, **{"inference_input_file": folder / "in", **flags}), capsys, 2, words)


def test_a_history_is_refused_by_what_does_not_read_it(folder, tmp_path_factory, capsys):
    flags = {"inference_input_file": folder / "in", "inference_ref_file": folder / "in"}
    plain = write_model(tmp_path_factory.mktemp("plain"))
    argv = command(plain, document_history="other", **flags)
    fails(argv, capsys, 2, "--document_history has no effect: the cell 'luong' translates every")
    with pytest.raises(UsageError, match="a history has no effect: the cell 'luong' translates"):
        list(api.load(str(plain)).translate(LINES, history=[None] * len(LINES)))
    summary = write_model(tmp_path_factory.mktemp("summary"), "rnnsearch", cell="summary")
    argv = command(summary, document_history="reference", **flags)
    fails(argv, capsys, 2, "'summary' reads the previous source sentences, not their translations")


def test_a_single_document_has_no_other(model, folder, capsys):
    argv = command(model, inference_input_file=folder / "in", document_history="other")
    fails_after_note(argv, capsys, 1, "expected two documents or more, and there is one")


CONTEXTS = {
    "cache": {"cell": "cache", "cache_size": 4, "projection_bias": True},
    "summary": {"cell": "summary"},
    "previous": {"cell": "previous"},
    "neural": {"neural_cache_size": 4, "neural_cache_lambda": 0.4},
}


@pytest.mark.quick("cache")
@pytest.mark.parametrize("context", CONTEXTS)
def test_contrasts_are_scored_in_their_documents(context, tmp_path, folder, capsys):
    model = write_model(tmp_path, "rnnsearch", unit_type="gru", **CONTEXTS[context])
    wrong = ["", "KATZE ||| DIE DIE", "", "", "UND", "HUND"]
    for name, lines in (("ref", REFERENCES), ("wrong", wrong)):
        text_files.write_lines(folder / name, lines)
    flags = {
        "inference_input_file": folder / "in", "inference_document_file": folder / "docs",
        "inference_ref_file": folder / "ref", "mode": "score",
    }  # fmt: skip
    references = run(model, folder / "plain", **flags)
    capsys.readouterr()
    flags["inference_contrast_file"] = folder / "wrong"
    lines = run(model, folder / "scored", **flags)
    scores = [list(map(float, line.split(" ||| "))) for line in lines]
    plain = list(map(float, references))
    assert [several[0] for several in scores] == pytest.approx(plain, abs=2e-4)
    assert [len(several) for several in scores] == [1, 3, 1, 1, 2, 2]
    loaded, pairs = api.load(str(model)), list(zip(LINES, REFERENCES))
    for index, number, text in ((1, 1, "KATZE"), (1, 2, "DIE DIE"), (4, 1, "UND"), (5, 1, "HUND")):
        before = pairs[0 if index < 3 else 3 : index]
        forced = loaded.score([*before, (LINES[index], text)], [0] * (len(before) + 1))
        assert scores[index][number] == pytest.approx(forced[-1].log_prob, abs=2e-4)
    right = sum(several[0] > max(several[1:]) for several in scores if len(several) > 1)
    expected = f"contrastive accuracy {100 * right / 3:.2f}%: {right} of 3 items"
    assert expected in capsys.readouterr().err


def test_contrasts_that_do_not_fit_are_refused(model, folder, capsys):
    text_files.write_lines(folder / "ref", REFERENCES)
    text_files.write_lines(folder / "wrong", ["KATZE"])
    flags = {"inference_input_file": folder / "in", "inference_contrast_file": folder / "wrong"}
    argv = command(model, mode="score", inference_ref_file=folder / "ref", **flags)
    fails_after_note(argv, capsys, 1, "wrong has 1 lines and .*ref 6: expected the same number")
    fails(command(model, **flags), capsys, 2, "--mode=infer does not use --inference_contrast_file")

"""The command line with a model: translations, n best, alignments, scores."""

import io
import json
import math
import re
import subprocess
import sys

import numpy as np
import pytest
from helpers.command_line import (
    CAP,
    LINES,
    WORDS,
    command,
    fails_after_note,
    run_in_a_process,
    tree,
)

from tfmann import nmt
from tfmann.data import text_files

pytestmark = pytest.mark.usefixtures("untraced_module")


@pytest.fixture(scope="module")
def translations(model, tmp_path_factory):
    """Best and 3-best translations of LINES, with alignments, as files."""
    folder = tmp_path_factory.mktemp("translations")
    text_files.write_lines(folder / "in", LINES)
    (folder / "best").write_text("old\n")
    for name, count in (("best", 1), ("nbest", 3)):
        argv = command(
            model, inference_input_file=folder / "in", inference_output_file=folder / name,
            alignment_file=folder / f"{name}.align", num_translations_per_input=count,
        )  # fmt: skip
        assert nmt.main(argv) == 0
    return {
        path.name: path.read_bytes().decode("utf-8").split("\n")[:-1] for path in folder.iterdir()
    }


def test_translations_keep_lines_and_order(translations):
    assert set(translations) == {"in", "best", "best.align", "nbest", "nbest.align"}
    best = translations["best"]
    assert len(best) == len(LINES)
    assert best[1] == "" and all(line for line in best[2:])
    for line in best:
        assert set(line.split()) <= {word.upper() for word in WORDS} | {"<unk>"}
    assert len(set(best)) > 3, "the model says one thing to everything: it tests no order"


def test_translations_have_the_first_words_and_the_phrases_of_files(
    translations, model, tmp_path, capsys
):
    words = [word.upper() for word in WORDS]
    given = [i % 2 == 0 for i in range(len(LINES))]
    prefixes = [words[i % 3] if is_given else "" for i, is_given in enumerate(given)]
    assert not all(map(str.startswith, translations["best"], prefixes)), "they change nothing"
    rows = [
        [words[(i + 1) % 3], f"{words[4]} {words[i % 2]}"] if is_given else []
        for i, is_given in enumerate(given)
    ]
    text_files.write_lines(tmp_path / "in", LINES)
    text_files.write_lines(tmp_path / "begin", prefixes)
    text_files.write_lines(tmp_path / "phrases", ["\t".join(row) for row in rows])
    flags = {
        "inference_input_file": tmp_path / "in",
        "inference_prefix_file": tmp_path / "begin",
        "inference_constraint_file": tmp_path / "phrases",
        "infer_mode": "beam_search",
        "beam_width": 6,
    }
    for jobs in ({}, {"num_workers": 2, "jobid": 1}, {"num_workers": 2, "jobid": 0}):
        name = tmp_path / ("parts" if jobs else "whole")
        assert nmt.main(command(model, inference_output_file=name, **flags, **jobs)) == 0
    texts = (tmp_path / "whole").read_text(encoding="utf-8").split("\n")[:-1]
    assert (tmp_path / "parts").read_text(encoding="utf-8").split("\n")[:-1] == texts
    for line, prefix, row, text in zip(LINES, prefixes, rows, texts):
        assert text.startswith(prefix) if line else not text
        for phrase in row:
            assert f" {phrase} " in f" {text} " if line else not text


def test_files_of_words_and_phrases_that_do_not_fit_are_refused(model, tmp_path, capsys):
    text_files.write_lines(tmp_path / "in", LINES)
    text_files.write_lines(tmp_path / "begin", [WORDS[0].upper()] * 2)
    flags = {"inference_input_file": tmp_path / "in", "infer_mode": "beam_search"}
    begin = {"inference_prefix_file": tmp_path / "begin"}
    fails_after_note(command(model, **flags, **begin), capsys, 1, "begin has 2 lines")
    begin["inference_ref_file"] = tmp_path / "in"
    argv = command(model, mode="score", inference_input_file=tmp_path / "in", **begin)
    fails_after_note(argv, capsys, 2, "--mode=score does not use --inference_prefix_file")
    text_files.write_lines(tmp_path / "phrases", ["", "", "no\tyes", *[""] * (len(LINES) - 3)])
    flags["inference_constraint_file"] = tmp_path / "phrases"
    argv = command(model, **{**flags, "infer_mode": "sample"})
    fails_after_note(argv, capsys, 2, "samples cannot be drawn with --inference_constraint_file")
    argv = command(model, **flags, inference_output_file=tmp_path / "phrases")
    fails_after_note(argv, capsys, 2, "inference_constraint_file")
    message = "/phrases, line 3: no translation can contain 'no'"
    fails_after_note(command(model, **flags), capsys, 1, message)


def test_a_line_that_takes_long_is_named_once(model, tmp_path, capsys):
    lines = [WORDS[0], " ".join(WORDS[:3] * 200), WORDS[1], " ".join(WORDS[:1] * 501)]
    text_files.write_lines(tmp_path / "in", lines)
    flags = {"inference_input_file": tmp_path / "in", "inference_output_file": tmp_path / "out"}
    argv = command(model, tgt_max_len_infer=3, **flags)
    for cap, count in ((0, 1), (9, 0)):
        capsys.readouterr()
        assert nmt.main([*argv, f"--src_max_len_infer={cap}"]) == 0
        message = capsys.readouterr().err
        assert message.count("takes long") == count
        assert not count or "line 2 has 600 words, which takes long" in message


def test_an_n_best_list_is_numbered_scored_and_begins_with_the_best(translations):
    rows = [line.split(" ||| ") for line in translations["nbest"]]
    assert [int(row[0]) for row in rows] == [i for i in range(len(LINES)) for _ in range(3)]
    for number in range(len(LINES)):
        three = rows[3 * number : 3 * number + 3]
        scores = [float(score) for *_, score in three]
        assert scores == sorted(scores, reverse=True)
        assert three[0][1] == translations["best"][number]
        if LINES[number]:
            assert len({hypothesis for _, hypothesis, _ in three}) == 3
            assert all(re.fullmatch(r"-\d+\.\d{4}", score) for *_, score in three)
        else:
            assert [row[1:] for row in three] == [["", "0.0000"]] * 3


def test_a_short_n_best_list_has_fewer_lines_of_the_same_number(model, tmp_path):
    """Within a limit of one word there is one translation of a line that is not blank."""
    text_files.write_lines(tmp_path / "in", LINES)
    argv = command(
        model, inference_input_file=tmp_path / "in", inference_output_file=tmp_path / "out",
        alignment_file=tmp_path / "links", num_translations_per_input=3, tgt_max_len_infer=1,
    )  # fmt: skip
    assert nmt.main(argv) == 0
    rows = [line.split(" ||| ") for line in (tmp_path / "out").read_text().splitlines()]
    numbers = [int(row[0]) for row in rows]
    assert numbers == [i for i, line in enumerate(LINES) for _ in range(1 if line else 3)]
    assert all(math.isfinite(float(row[2])) for row in rows)
    assert len((tmp_path / "links").read_text().splitlines()) == len(rows)


def test_alignments_are_pharaoh_lines_one_a_translation(translations):
    for name in ("best", "nbest"):
        assert len(translations[f"{name}.align"]) == len(translations[name])
    for source, hypothesis, line in zip(LINES, translations["best"], translations["best.align"]):
        links = [tuple(map(int, link.split("-"))) for link in line.split()]
        assert [t for _, t in links] == sorted({t for _, t in links})
        # U+2028 does not part words, and a link may fall on </s>, which is no word
        assert all(0 <= s < len(source.split(" ")) for s, _ in links)
        assert all(0 <= t < len(hypothesis.split()) for _, t in links)
        assert bool(links) <= bool(source)
    assert translations["nbest.align"][::3] == translations["best.align"]


def test_scores_and_alignments_of_the_best_come_back_when_forced(translations, model, tmp_path):
    """The score of a search is that of forced decoding of its translation."""
    rows = [line.split(" ||| ") for line in translations["nbest"]]
    ended = [i for i, row in enumerate(rows) if LINES[int(row[0])] and len(row[1].split()) < CAP]
    assert len(ended) > 5
    text_files.write_lines(tmp_path / "s", [LINES[int(rows[i][0])] for i in ended])
    text_files.write_lines(tmp_path / "t", [rows[i][1] for i in ended])
    outputs = {}
    for mode in ("score", "align"):
        argv = command(
            model, mode=mode, inference_input_file=tmp_path / "s",
            inference_ref_file=tmp_path / "t", inference_output_file=tmp_path / mode,
        )  # fmt: skip
        assert nmt.main(argv) == 0
        outputs[mode] = (tmp_path / mode).read_text().split("\n")[:-1]
    np.testing.assert_allclose(
        np.array(outputs["score"], float), [float(rows[i][2]) for i in ended], atol=1e-4
    )
    assert outputs["align"] == [translations["nbest.align"][i] for i in ended]


def test_standard_input_gives_what_a_file_gives(
    translations, model, source, monkeypatch, capsysbinary
):
    text = io.BytesIO(source.read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(text, encoding="ascii"))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(sys.stdout.buffer, encoding="ascii"))
    assert nmt.main(command(model, inference_input_file="-")) == 0
    out, err = capsysbinary.readouterr()
    assert out.decode("utf-8").split("\n")[:-1] == translations["best"]
    assert err.decode().startswith("weights of ") and err.count(b"\n") == 1


@pytest.mark.quick("True-1", "False-2")
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("to_file", [True, False])
def test_translations_are_scored_against_references(
    translations, model, tmp_path, capfdbinary, count, to_file
):
    """Wherever they go, and the best of each of n-best lists."""
    text_files.write_lines(tmp_path / "s", LINES)
    text_files.write_lines(tmp_path / "t", translations["best"])
    argv = command(
        model, inference_input_file=tmp_path / "s", inference_ref_file=tmp_path / "t",
        num_translations_per_input=count,
    )  # fmt: skip
    if to_file:
        argv.append(f"--inference_output_file={tmp_path / 'out'}")
    assert nmt.main(argv) == 0
    out, err = capfdbinary.readouterr()
    if to_file:
        assert out == b""
        out = (tmp_path / "out").read_bytes()
    assert out.count(b"\n") == count * len(LINES)
    scores = re.findall(r"^(\w+) ([\d.]+) \[", err.decode(), re.MULTILINE)
    assert scores == [("BLEU", "100.00"), ("chrF2", "100.00"), ("TER", "0.00")]


def test_eval_scores_against_the_references(translations, model, tmp_path, capsys):
    text_files.write_lines(tmp_path / "s", LINES)
    text_files.write_lines(tmp_path / "t", translations["best"])
    out = tmp_path / "scores"
    flags = {"mode": "eval", "inference_input_file": tmp_path / "s"}
    flags["inference_ref_file"] = tmp_path / "t"
    assert nmt.main(command(model, inference_output_file=out, **flags)) == 0
    record = json.loads(out.read_text())
    assert record["checkpoint"] == str(model / "best_bleu")
    bleu, chrf, ter = record["scores"]["input"]
    assert bleu["value"] > 99.99 and "tok:none" in bleu["signature"]
    assert chrf["value"] > 99.99 and ter["value"] == 0

    text_files.write_lines(tmp_path / "t", translations["best"][:-1])
    before = tree(tmp_path, model)
    fails_after_note(command(model, inference_output_file=out, **flags), capsys, 1, "6.*5|5.*6")
    assert tree(tmp_path, model) == before


@pytest.mark.thorough
def test_text_is_utf8_in_any_locale(translations, model, source):
    done = run_in_a_process(
        command(model, inference_input_file="-"), input=source.read_bytes(), stdout=subprocess.PIPE
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode("utf-8").split("\n")[:-1] == translations["best"]
    assert done.stderr.count(b"\n") == 1, done.stderr

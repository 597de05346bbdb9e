"""Scores of a rebuilt table: repetition, gold links, further tests, other directions."""

import json
from pathlib import Path

import pytest
from helpers.toy_table import started_command

from tfmann.papers import processes, reproduce, table_corpus
from tfmann.papers.tables import TABLES


def test_what_translations_repeat_is_kept(started, capsys):
    root, corpus, _ = started
    assert reproduce.main(started_command(root, corpus, "--rows=base")) == 0
    (line,) = (root / "results" / "vi-en-cpu.jsonl").read_text().splitlines()
    # "said it said it", six times: of its n-grams of 1 to 4 words, 2, 1, 0 and 0 are repeated
    assert json.loads(line)["repetition"] == [
        {"order": 1, "repeated": 12, "ngrams": 24}, {"order": 2, "repeated": 6, "ngrams": 18},
        {"order": 3, "repeated": 0, "ngrams": 12}, {"order": 4, "repeated": 0, "ngrams": 6},
    ]  # fmt: skip
    interval = json.loads(line)["interval"]
    assert "bs:1000" in interval["signature"] and interval["mean"] >= 0 and interval["ci"] >= 0
    resampled = json.loads(line)["resampled"]
    shares = {"dev": "bleu", "test": "bleu", "repetition": "repeated"}
    assert resampled.keys() == shares.keys()
    for group, resamples in resampled.items():
        assert (resamples["sentences"], resamples["seed"]) == (6, 12345)
        assert len(resamples[shares[group]]) == 1000
    assert set(resampled["repetition"]["repeated"]) == {3333}  # the same in every sentence


@pytest.fixture
def aligned(started):
    """The same with gold links of the test."""
    root, corpus, trained = started
    path = root / "data" / "toy.json"
    manifest = json.loads(path.read_text())
    manifest["alignments"] = "test.align"
    manifest["files"].append({"path": "test.align", "urls": ["https://h/f"], "lines": 6})
    path.write_text(json.dumps(manifest))
    return root, corpus, trained


def test_gold_links_score_alignments_and_translations_once(aligned, monkeypatch, capsys):
    root, corpus, _ = aligned
    commands = []

    def run_to_end(command):
        commands.append(command)
        scores = {"input": [{"value": 4.0}, {"value": 6.0}]}
        alignment = {"aer": 0.25, "soft_aer": 0.5, "sentences": 6, "sure": 9, "possible": 9}
        judged = {"under": 0.1, "reworded": 0.2, "over": 0.3, "judged": 9}
        alignment["by_sentence"] = {
            "in_sure": [1] * 6, "in_possible": [1] * 6, "links": [2] * 6, "sure": [2] * 6,
        }  # fmt: skip
        body = {"scores": scores, "alignment": alignment, "adequacy": judged}
        flags = dict(flag.split("=", 1) for flag in command[3:])
        Path(flags["--inference_output_file"]).write_text(json.dumps(body))
        return 0

    monkeypatch.setattr(processes, "run_to_end", run_to_end)
    command = started_command(root, corpus, "--rows=base")
    assert reproduce.main(command) == reproduce.main(command) == 0
    out = capsys.readouterr().out
    assert "| 25.00 | 50.00 | 10.00 | 20.00 | 30.00 |" in out and "gold links of test: " in out
    (flags,) = [arguments[3:] for arguments in commands]
    assert "--mode=eval" in flags and f"--out_dir={root / 'runs/vi-en/cpu/base'}" in flags
    assert f"--gold_file={corpus / 'test.align'}" in flags
    assert f"--inference_input_file={corpus / 'test.src'}" in flags
    assert f"--inference_ref_file={corpus / 'test.tgt'}" in flags
    (line,) = (root / "results" / "vi-en-cpu.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert record["adequacy"]["judged"] == 9 and record["alignment"]["aer"] == 0.25
    assert "by_sentence" not in record["alignment"] and "adequacy" not in record["resampled"]
    assert record["resampled"]["alignment"]["aer"] == [5000] * 1000


@pytest.mark.parametrize(
    "links, words",
    [
        ("0-0\n" * 6 + "0-0\n", "7 lines; expected 6"),
        ("0-0\n" * 5 + "0:0\n", "line 6: '0:0' is not a link"),
        ("0-0\n" * 5 + "99-0\n", "line 6: 99-0 is a link"),
    ],
)
def test_gold_links_are_looked_at_before_training(aligned, links, words, capsys):
    root, corpus, trained = aligned
    (corpus / "test.align").write_text(links)
    assert reproduce.main(started_command(root, corpus)) == 1
    error = capsys.readouterr().err
    assert words in error and "test.align" in error and not trained


def test_further_tests_are_translated_once_and_averaged(started, monkeypatch, capsys):
    root, corpus, _ = started
    path = root / "data" / "toy.json"
    manifest = json.loads(path.read_text())
    manifest["more_tests"] = ["other"]
    files = [{"path": f"other.{side}", "urls": ["https://h/f"], "lines": 2}
             for side in ("src", "tgt0", "tgt1")]  # fmt: skip
    path.write_text(json.dumps({**manifest, "files": manifest["files"] + files}))
    truth = ["the cat sat on the mat", "a dog lay in the sun"]
    for entry in files:
        (corpus / entry["path"]).write_text("".join(f"{line}\n" for line in truth))
    commands = []

    def run_to_end(command):
        commands.append(command)
        flags = dict(argument.split("=", 1) for argument in command[3:])
        translations = (
            truth if "/late" in flags["--out_dir"] else ["the cat sat", "a dog lay in the sun"]
        )
        output = Path(flags["--inference_output_file"])
        output.write_text("".join(f"{line}\n" for line in translations))
        return 0

    monkeypatch.setattr(processes, "run_to_end", run_to_end)
    monkeypatch.setitem(TABLES, "vi-en", TABLES["vi-en"]._replace(baselines=("base",)))
    command = started_command(root, corpus, "--rows=base,late")
    assert reproduce.main(command) == reproduce.main(command) == 0
    first, second = commands
    assert "--mode=infer" in first and f"--inference_input_file={corpus / 'other.src'}" in first
    assert not any("document" in flag for flag in first)
    base, late = map(json.loads, (root / "results" / "vi-en-cpu.jsonl").read_text().splitlines())
    (score, *_) = late["more_tests"]["other"]
    assert score["value"] == pytest.approx(100) and "nrefs:2" in score["signature"]
    # the first test is the same for all rows, so half the difference on the other is all
    (test,) = late["significance"]
    difference = 100 - base["more_tests"]["other"][0]["value"]
    assert test["difference"] == pytest.approx(difference / 2)
    assert (test["wins"], test["losses"]) == (1, 0)
    assert test["signature"].endswith("mean of 2 tests")
    assert late["resampled"]["test"]["sentences"] == 8 and "interval" not in late
    assert sum(scores["sentences"] for scores in late["by_length"]) == 8  # of both tests


def test_a_table_in_reverse_has_the_languages_exchanged(started):
    _, corpus, _ = started
    table = TABLES["vi-en"]._replace(reverse=True)
    settings = table_corpus.find_corpus(table, "cpu", str(corpus), "").settings
    assert (settings["src"], settings["tgt"]) == ("tgt", "src")

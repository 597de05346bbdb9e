"""Agreement of attention in the record of a run, in tables, and what is compared with what."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.claims import NO_FOLDER
from helpers.command_line import WORDS, write_model
from helpers.records import record, table
from helpers.toy_table import settings_of, started_command

from tfmann.evaluation.agreement import AGREEMENT
from tfmann.evaluation.verdicts import FAILS, HOLDS, INCONCLUSIVE
from tfmann.papers import agreements, inspections, judgement, rendering, reproduce
from tfmann.papers.agreement_table import agreement_table
from tfmann.papers.agreements import Run
from tfmann.papers.claim import MemoryClaim
from tfmann.papers.claims import CLAIMS
from tfmann.papers.judgement import NOT_MEASURED
from tfmann.papers.table import Row
from tfmann.papers.table_runs import TableRuns
from tfmann.papers.tables import TABLES

NAMES = ("overlap", "overlap_by_chance", "overlap_even_pace", "same_position",
         "same_position_by_chance", "same_position_even_pace")  # fmt: skip
(CLAIM,) = (claim for claim in CLAIMS if isinstance(claim, MemoryClaim) and claim.base)
FLAT = {"history": [{"step": 100 * i, "dev_bleu": 10.0} for i in range(1, 6)]}


def fake_corpus(folder):
    """A corpus of one test, whose words the models of `write_model` know."""
    lines = [f"{a} {b}" for a, b in zip(WORDS, WORDS[1:])]
    for name, text in (("test.src", lines), ("test.tgt", [line.upper() for line in lines])):
        (folder / name).write_text("".join(f"{line}\n" for line in text), "utf-8")
    return SimpleNamespace(
        test_sources=lambda: {"output_test": str(folder / "test.src")},
        test_references=lambda: {"output_test": [str(folder / "test.tgt"), "a second reference"]},
    )


@pytest.mark.thorough
def test_two_runs_are_compared_over_the_references_once(tmp_path):
    corpus, folders = fake_corpus(tmp_path), [tmp_path / "ours", tmp_path / "base"]
    for folder in folders:
        folder.mkdir()
        write_model(folder)
    base = Run("luong", 3, str(folders[1]))
    assert agreements.measure(corpus, str(folders[0]), [base]) == []  # it has not ended
    (folders[1] / "results.json").write_text('{"steps": 1}', "utf-8")
    (measured,) = agreements.measure(corpus, str(folders[0]), [base])
    assert measured["base"] == {"row": "luong", "seed": 3} and measured["tests"] == 1
    assert measured["forced"] == "reference" and measured["revision"]
    assert measured["sentences"] == measured["sentences_of_file"] == len(WORDS) - 1
    means = {entry["name"]: entry["mean"] for entry in measured["statistics"]}
    assert tuple(means) == NAMES and {entry["head"] for entry in measured["statistics"]} == {
        AGREEMENT
    }
    assert means["same_position"] == 1.0 and means["overlap"] == pytest.approx(1, abs=1e-3)
    assert means["same_position_by_chance"] < 1
    assert all("untrained" in entry for entry in measured["statistics"])
    (folders[1] / "best_bleu").rename(tmp_path / "elsewhere")  # what is in the folder is enough
    assert agreements.measure(corpus, str(folders[0]), [base]) == [measured]
    assert agreements.measure(corpus, str(folders[0]), [base._replace(seed=1)]) == []


def test_a_base_whose_training_was_continued_is_not_compared_before_its_end(tmp_path, monkeypatch):
    """Its best weights are then those of the evaluations so far."""
    corpus, base = fake_corpus(tmp_path), Run("luong", 1, str(tmp_path / "base"))
    monkeypatch.setattr(agreements, "has_best", lambda folder: True)
    measured = '{"statistics": [], "revision": "r"}'
    monkeypatch.setattr(
        inspections, "inspect_run", lambda flags, out_dir, path: path.write_text(measured, "utf-8")
    )
    further = tmp_path / "base" / "checkpoints" / "step-00000002"
    further.mkdir(parents=True)
    (tmp_path / "base" / "results.json").write_text('{"steps": 1}', "utf-8")
    assert agreements.measure(corpus, str(tmp_path), [base]) == []
    further.rmdir()
    assert len(agreements.measure(corpus, str(tmp_path), [base])) == 1


def test_a_base_that_was_trained_again_is_compared_again(tmp_path, monkeypatch):
    corpus, commands = fake_corpus(tmp_path), []

    def inspect_run(flags, out_dir, path):
        commands.append(flags)
        path.write_text(json.dumps({"statistics": [], "revision": str(len(commands))}), "utf-8")

    monkeypatch.setattr(inspections, "inspect_run", inspect_run)
    monkeypatch.setattr(agreements, "has_best", lambda folder: True)
    base = Run("luong", 1, str(tmp_path))
    results = tmp_path / "results.json"
    results.write_text('{"steps": 1}', "utf-8")
    for expected in ("1", "1"):
        (measured,) = agreements.measure(corpus, str(tmp_path), [base])
        assert measured["revision"] == expected
    assert commands[0] == {
        "input": str(tmp_path / "test.src"), "reference": str(tmp_path / "test.tgt"),
        "attention_of": str(tmp_path),
    }  # fmt: skip
    for seconds, expected in ((-60, "1"), (60, "2")):
        compared = results.stat().st_mtime - seconds
        os.utime(tmp_path / "agreement-luong-seed1.json", (compared, compared))
        (measured,) = agreements.measure(corpus, str(tmp_path), [base])
        assert measured["revision"] == expected


def test_a_base_that_has_not_ended_is_not_compared(tmp_path, monkeypatch):
    corpus, base = fake_corpus(tmp_path), Run("luong", 1, str(tmp_path / "base"))
    monkeypatch.setattr(agreements, "has_best", lambda folder: True)
    monkeypatch.setattr(inspections, "inspect_run", None)
    (tmp_path / "base").mkdir()
    assert agreements.measure(corpus, str(tmp_path), [base]) == []
    # what was measured before a base was trained again is not of that base any more
    path, results = tmp_path / "agreement-luong-seed1.json", tmp_path / "base" / "results.json"
    path.write_text(json.dumps({"statistics": []}), "utf-8")
    assert len(agreements.measure(corpus, str(tmp_path), [base])) == 1
    results.write_text('{"steps": 1}', "utf-8")
    os.utime(results, (path.stat().st_mtime + 60,) * 2)
    monkeypatch.setattr(agreements, "has_best", lambda folder: False)
    assert agreements.measure(corpus, str(tmp_path), [base]) == []


def test_rows_are_compared_with_the_base_of_their_seed_and_the_base_with_its_first(monkeypatch):
    luong, other = Row("luong", "baseline"), Row("b", "B")
    monkeypatch.setitem(TABLES, "vi-en", TABLES["vi-en"]._replace(rows=(luong, other), stand_in={}))
    runs = TableRuns("vi-en", "cpu", None, "folder", Path("results"))
    bases = runs._attention_bases
    assert bases(other, 2) == [Run("luong", 2, os.path.join("folder", "luong-seed2"))]
    assert bases(other, 1) == [Run("luong", 1, os.path.join("folder", "luong"))]
    assert bases(luong, 2) == [Run("luong", 1, os.path.join("folder", "luong"))]
    assert bases(luong, 1) == []
    assert bases(other._replace(weights="luong"), 2) == []
    monkeypatch.setitem(TABLES, "vi-en", TABLES["vi-en"]._replace(attention_base=""))
    assert bases(other, 2) == []


def test_a_reproduced_row_has_its_agreement(started, monkeypatch):
    root, corpus, _ = started
    names = TABLES["vi-en"]._replace(attention_base="base")
    monkeypatch.setitem(TABLES, "vi-en", names)
    monkeypatch.setattr(agreements, "has_best", lambda folder: Path(folder).exists())
    assert settings_of(root, "base").exists()
    assert reproduce.main(started_command(root, corpus, "--seeds=1,2")) == 0
    text = (root / "results" / "vi-en-cpu.jsonl").read_text("utf-8")
    records = [json.loads(line) for line in text.splitlines()]
    bases = {
        (run["row"], run["seed"]): [entry["base"] for entry in run.get("agreement", ())]
        for run in records
    }
    assert bases == {
        ("base", 1): [],
        ("base", 2): [{"row": "base", "seed": 1}],
        **{(row, seed): [{"row": "base", "seed": seed}]
           for row in ("late", "later") for seed in (1, 2)},
    }  # fmt: skip


def agreement(mean, base="a", seed=1, untrained=0.1):
    entries = [
        {"head": AGREEMENT, "phase": "target", "name": name, "mean": mean,
         "interval": [mean - 0.02, mean + 0.02], "untrained": {"mean": untrained, "interval": None}}
        for name in NAMES
    ]  # fmt: skip
    return {"agreement": [{
        "base": {"row": base, "seed": seed}, "statistics": entries, "sentences": 8,
        "sentences_of_file": 8, "unit": "sentence", "units": 8, "tests": 1,
    }]}  # fmt: skip


def test_a_line_for_each_system_and_one_for_two_seeds_of_the_base():
    toy = table(Row("a", "the base"), Row("b", "B"), Row("c", "C"), attention_base="a")
    records = [
        record("a", seed=1), record("a", seed=2, **agreement(0.8)),
        record("b", seed=1, **agreement(0.5)), record("b", seed=2, **agreement(0.6)),
        record("c", seed=1),
    ]  # fmt: skip
    rendered = agreement_table(toy, records)
    assert rendered.title.startswith(
        "Agreement of attention with that of the the base, over the references over all 8 sentences"
    )
    assert [row[:2] for row in rendered.rows] == [
        ["the base, two seeds", "0.80 [0.78, 0.82] (0.10 [-])"],
        ["B", "0.55 [0.53, 0.57] (0.10 [-])"],
    ]
    assert len(rendered.heading) == len(rendered.rows[0]) == 7
    assert agreement_table(toy, records[:1]) is None
    assert agreement_table(toy._replace(attention_base="b"), records) is None
    assert rendered.title in rendering.render(toy, "tiny", records)


def test_the_base_of_a_table_is_one_of_its_rows():
    bases = {name: at.attention_base for name, at in TABLES.items() if at.attention_base}
    assert bases == dict.fromkeys(("vi-en", "ro-en", "synthetic-long"), "luong")
    for name, base in bases.items():
        assert base in {row.name for row in TABLES[name].rows}


def judged(means, chance=0.1, pace=0.2, untrained=0.05, base_history=FLAT["history"], **more):
    """The verdict on the claim, of a seed for each mean."""
    values = {"same_position_by_chance": chance, "same_position_even_pace": pace}
    records = []
    for seed, mean in enumerate(means, start=1):
        run = record("ntm_1", seed=seed, **FLAT, **agreement(mean, "luong", seed, untrained))
        (part,) = run["agreement"]
        part.update(sentences=500, sentences_of_file=500, units=500, **more)
        for entry in part["statistics"]:
            value = values.get(entry["name"], mean)
            entry.update(mean=value, interval=[value - 0.02, value + 0.02], sentences=500)
        base = agreement(0.9, "luong") if seed > 1 else {}
        records += [run, record("luong", seed=seed, history=base_history, **base)]
    ((_, verdict),) = judgement.judge([CLAIM], {("vi-en", "cpu"): records}, NO_FOLDER)
    return verdict


def test_agreement_has_to_be_proven_at_most_steps_and_beyond_what_chance_gives():
    verdict = judged((0.70, 0.72, 0.74))
    assert verdict.status == HOLDS and verdict.measured == "vi-en, scale cpu"
    assert verdict.evidence.startswith(
        "steps at the other system's source word: 0.72 [0.70, 0.74] (seeds 0.70, 0.72, 0.74); the "
        "claim: above 0.5; with untrained weights 0.05; the same with the steps in random order "
        "0.10 [0.08, 0.12]; the same at an even pace through the source 0.20 "
    )
    assert "; two seeds of luong 0.90 [0.88, 0.92]; 500 sentences; p " in verdict.evidence
    assert judged((0.30, 0.32, 0.34)).status == FAILS
    for changes in ({"chance": 0.75}, {"pace": 0.75}, {"untrained": 0.75}):
        assert judged((0.70, 0.72, 0.74), **changes).status == INCONCLUSIVE, changes
    assert judged((0.72,)).status == INCONCLUSIVE


def test_the_base_too_has_to_have_converged():
    rising = [{"step": 100 * i, "dev_bleu": 2.0 * i} for i in range(1, 6)]
    verdict = judged((0.70, 0.72, 0.74), base_history=rising)
    assert verdict.status == INCONCLUSIVE
    assert verdict.conditions.endswith("dev BLEU was still rising, luong by 2.00")


def test_records_without_agreement_are_not_measured():
    statistics = {"statistics": [], "unit": "sentence", "units": 1, "sentences": 1}
    records = [record("ntm_1", **agreement(0.7, "another")), record("ntm_1", inspection=statistics)]
    ((_, verdict),) = judgement.judge([CLAIM], {("vi-en", "cpu"): records}, NO_FOLDER)
    assert verdict.status == NOT_MEASURED
    assert CLAIM.base == TABLES["vi-en"].attention_base == TABLES["ro-en"].attention_base
    assert {CLAIM.statistic, *CLAIM.nulls} <= set(NAMES)

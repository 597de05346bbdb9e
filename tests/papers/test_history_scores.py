"""Other histories and unseen pairs in a table: what is decoded, scored, recorded and judged."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.records import record
from helpers.toy_table import settings_of, started_command

from tfmann.data.text_files import write_lines
from tfmann.evaluation import significance
from tfmann.evaluation.verdicts import HOLDS, INCONCLUSIVE
from tfmann.papers import (
    history_scores,
    judgement,
    metrics,
    output_scores,
    processes,
    reproduce,
    seed_pairs,
    table_runs,
)
from tfmann.papers.claim import Claim
from tfmann.papers.claims import CLAIMS
from tfmann.papers.output_scores import Output
from tfmann.papers.table import Row
from tfmann.papers.tables import TABLES

SETTINGS = {"bleu_tokenize": "none", "bleu_lowercase": False}


def scores_of(bleu, moves=(0.0,) * 1000, **more):
    """Scores of a test with a history."""
    resampled = {"sentences": 100, "seed": 1, "documents": 30, **more}
    resampled["bleu"] = [round(100 * (bleu + move)) for move in moves]
    return {"test": record("x", bleu)["best"]["test"], "resampled": {"test": resampled}}


def run_of(seed, own_bleu, other_bleu, spread=0.0):
    history = [{"step": step, "dev_bleu": 10.0} for step in range(100, 600, 100)]
    moves = spread * np.tile([-1.0, 1.0], 500)
    return record(
        "cache", own_bleu, seed=seed, history=history, resampled=scores_of(own_bleu)["resampled"],
        histories={"other": scores_of(other_bleu, moves)}, significance=[{"baseline": "rnnsearch"}],
    )  # fmt: skip


def verdict(records):
    claim = Claim("P", "1", "text", "higher", "cache", "cache:other", ("bcontrast-de-en",))
    ((_, claim_verdict),) = judgement.judge(
        [claim], {("bcontrast-de-en", "cpu"): records}, Path("none")
    )
    return claim_verdict


def test_a_run_with_another_history_is_a_row_of_its_own():
    of_own_history = dict.fromkeys(("inspection", "adequacy", "alignment", "senses"), {"x": 1})
    run = {**run_of(1, 12.0, 10.0), **of_own_history}
    first, second = history_scores.with_histories([run])
    assert first is run and second["row"] == "cache:other"
    assert (metrics.test_bleu(first), metrics.test_bleu(second)) == (12.0, 10.0)
    assert not {"histories", "significance", *of_own_history} & set(second)
    assert history_scores.with_histories([record("a")]) == [record("a")]


def test_the_right_document_is_better_or_that_is_not_proven():
    narrow = verdict([run_of(seed, 12.0 + seed / 50, 10.0) for seed in (1, 2, 3)])
    assert narrow.status == HOLDS and "test BLEU 12.04 against 10.00" in narrow.evidence
    assert "resampled by document, of which there are 30" in narrow.evidence
    assert narrow.corpus == "not the paper's corpus"
    wide = verdict([run_of(seed, 12.0 + seed / 50, 10.0, spread=2.0) for seed in (1, 2, 3)])
    assert wide.status == INCONCLUSIVE
    assert verdict([run_of(1, 12.0, 10.0)]).status == INCONCLUSIVE  # one seed
    assert verdict([record("cache", 12.0, seed=1)]).status == judgement.NOT_MEASURED


def test_resamples_of_sentences_are_not_compared_with_those_of_documents():
    records = history_scores.with_histories([run_of(1, 12.0, 10.0)])
    del records[1]["resampled"]["test"]["documents"]
    pairs = seed_pairs.pair_seeds("test BLEU", records, "cache", "cache:other")
    assert (
        pairs.sentence_errors() == [0.0]
        and "these test sentences only" in (pairs.sentence_variance()[1])
    )


def invent_output(sentences, documents):
    random = np.random.default_rng(3)
    truth = [" ".join(random.choice(list("abcdef"), 6)) for _ in range(sentences)]
    return Output([line[:-2] for line in truth], [truth], documents)


def test_documents_are_resampled_if_there_are_enough():
    least = significance.ENOUGH_DOCUMENTS
    few, many = ([i * count // 60 for i in range(60)] for count in (least - 1, least))
    resamples = output_scores.resample([invent_output(60, many)], SETTINGS)
    assert (resamples["documents"], resamples["sentences"]) == (least, 60)
    expected = significance.resampled_bleu(*invent_output(60, many)[:2], documents=many)
    assert resamples["bleu"] == [round(100 * score) for score in expected]
    for documents, number in ((few, least - 1), (None, None)):
        resamples = output_scores.resample([invent_output(60, documents)], SETTINGS)
        assert "documents" not in resamples and resamples.get("few_documents") == number
    of_two_tests = output_scores.resample(
        [invent_output(60, many), invent_output(60, few)], SETTINGS
    )
    assert "documents" not in of_two_tests and of_two_tests["sentences"] == 120


def test_selected_translations_keep_their_references_and_documents():
    output = Output(["x", "y", "z"], [["a", "b", "c"], ["d", "e", "f"]], [4, 4, 5])
    assert output.select([0, 2]) == Output(["x", "z"], [["a", "c"], ["d", "f"]], [4, 5])
    unknown = output._replace(documents=None)
    assert unknown.select([1]) == Output(["y"], [["b"], ["e"]], None)


def test_a_pair_is_seen_with_any_of_its_references(tmp_path):
    files = {
        "train.src": "abcx", "train.tgt": "121d",
        "test.src": "abcd", "test.tgt0": "1111", "test.tgt1": "2223",
    }  # fmt: skip
    for name, lines in files.items():
        write_lines(tmp_path / name, lines)
    train, (source, *references) = (
        [str(tmp_path / name) for name in files if name.startswith(split)]
        for split in ("train", "test")
    )
    corpus = SimpleNamespace(
        training_files=train,
        test_sources=lambda raw: {"output_test": source},
        test_references=lambda raw: {"output_test": references},
    )
    assert output_scores.unseen_sentences(corpus) == {"output_test": [3]}


@pytest.fixture
def documents(started, monkeypatch):
    """The rows `late` and `later` read documents; decoding writes the history's name."""
    root, corpus, _ = started
    path = root / "data" / "toy.json"
    manifest = json.loads(path.read_text())
    manifest["files"] += [
        {"path": f"{split}.docs", "urls": ["https://h/f"], "lines": lines}
        for split, lines in (("train", 120), ("dev", 6), ("test", 6))
    ]
    path.write_text(json.dumps(manifest))
    (corpus / "test.docs").write_text("1\n1\n1\n2\n2\n2\n")
    cells = {"late": "cache", "later": "summary", "base": "rnnsearch"}
    for row, cell in cells.items():
        file = settings_of(root, row)
        settings = {**json.loads(file.read_text()), "cell": cell, "unit_type": "gru"}
        file.write_text(json.dumps(settings))

    def train(table, scale, row, settings, out_dir, fake=table_runs.train):
        fake(table, scale, row, settings, out_dir)
        results = Path(out_dir, "results.json")
        contents = json.loads(results.read_text())
        contents["hparams"]["cell"] = cells[row.name]
        results.write_text(json.dumps(contents))

    monkeypatch.setattr(table_runs, "train", train)
    commands = []

    def run_to_end(command):
        flags = dict(flag.split("=", 1) for flag in command[3:])
        commands.append(flags)
        truth = (corpus / "test.tgt").read_text().splitlines()
        if flags["--document_history"] == "other":
            truth = [line.rsplit(None, 2)[0] for line in truth]
        Path(flags["--inference_output_file"]).write_text("".join(f"{x}\n" for x in truth))
        return 0

    monkeypatch.setattr(processes, "run_to_end", run_to_end)
    return root, corpus, commands


def test_a_table_decodes_each_history_that_a_cell_reads_once(documents, capsys):
    root, corpus, commands = documents
    command = started_command(root, corpus)
    assert reproduce.main(command) == reproduce.main(command) == 0
    decoded = [(Path(flags["--out_dir"]).name, flags["--document_history"]) for flags in commands]
    assert sorted(decoded) == [("late", "other"), ("late", "reference"), ("later", "other")]
    for flags in commands:
        assert flags["--mode"] == "infer"
        assert flags["--inference_input_file"] == str(corpus / "test.src")
        assert flags["--inference_document_file"] == str(corpus / "test.docs")
        reference = str(corpus / "test.tgt") if flags["--document_history"] == "reference" else None
        assert flags.get("--inference_ref_file") == reference
    lines = (root / "results" / "vi-en-cpu.jsonl").read_text().splitlines()
    rows = {row["row"]: row for row in map(json.loads, lines)}
    assert "histories" not in rows["base"]
    assert set(rows["late"]["histories"]) == {"reference", "other"}
    assert metrics.history_bleu(rows["late"], "reference") == pytest.approx(100)
    assert 10 < metrics.history_bleu(rows["later"], "other") < 95
    assert metrics.history_bleu(rows["later"], "reference") is None
    assert "ours test, other document |" in capsys.readouterr().out


def test_one_document_has_no_other_history(documents):
    root, corpus, commands = documents
    (corpus / "test.docs").write_text("1\n" * 6)
    assert reproduce.main(started_command(root, corpus, "--rows=late")) == 0
    assert [flags["--document_history"] for flags in commands] == ["reference"]


def test_test_pairs_of_training_are_left_out_if_there_are_many(documents):
    root, corpus, _ = documents
    sides = {side: (corpus / f"test.{side}").read_text().splitlines() for side in ("src", "tgt")}
    for side, lines in sides.items():
        train = (corpus / f"train.{side}").read_text().splitlines()
        train[7], train[9] = lines[4], lines[1]
        # of test sentence 2 only the source is in training
        train[11] = lines[2] if side == "src" else "something else"
        (corpus / f"train.{side}").write_text("".join(f"{line}\n" for line in train))
    assert reproduce.main(started_command(root, corpus, "--rows=late")) == 0
    lines = (root / "results" / "vi-en-cpu.jsonl").read_text().splitlines()
    late = {row["row"]: row for row in map(json.loads, lines)}["late"]
    assert (late["unseen"]["sentences"], late["unseen"]["of"]) == (4, 6)
    assert late["resampled"]["unseen"]["sentences"] == 4
    other_document = late["histories"]["other"]
    assert other_document["resampled"]["unseen"]["sentences"] == 4
    unseen = [0, 2, 3, 5]
    truth = [sides["tgt"][i] for i in unseen]
    lines = [line.rsplit(None, 2)[0] for line in truth]
    expected = output_scores.evaluate(Output(lines, [truth], None), SETTINGS)[0]["value"]
    assert metrics.unseen_bleu(late, "other") == pytest.approx(expected)


def run_with_unseen(row, seed, unseen_bleu, whole_bleu, history_bleu):
    """A run that scores otherwise on the unseen pairs than on all; its resamples do not differ."""

    def unseen(bleu):
        resamples = {"sentences": 80, "seed": 1, "documents": 30, "bleu": [round(100 * bleu)] * 9}
        return {
            "unseen": {"bleu": bleu, "sentences": 80, "of": 100}, "resampled": {"unseen": resamples}
        }  # fmt: skip

    other = {"test": record("x", whole_bleu)["best"]["test"], **unseen(history_bleu)}
    flat = [{"step": step, "dev_bleu": 10.0} for step in range(100, 600, 100)]
    return record(row, whole_bleu, seed=seed, history=flat, **unseen(unseen_bleu),
                  histories={"other": other} if row == "cache" else {})  # fmt: skip


def test_claims_about_unseen_pairs_are_judged_by_these_alone():
    claims = [
        claim for claim in CLAIMS
        if isinstance(claim, Claim) and claim.measure == "BLEU of unseen pairs"
        and claim.row == "cache" and claim.rival in ("rnnsearch", "cache:other")
    ]  # fmt: skip
    assert len(claims) == 2
    records = [
        run for seed in (1, 2, 3)
        for run in (run_with_unseen("cache", seed, 12 + seed / 100, 20, 10 + seed / 50),
                    run_with_unseen("rnnsearch", seed, 10 + seed / 50, 30, 0))
    ]  # fmt: skip
    for claim in claims:
        results = {("bcontrast-de-en", "cpu"): records}
        ((_, verdict),) = judgement.judge([claim], results, Path("no benchmarks"))
        assert verdict.status == HOLDS, verdict
        assert verdict.evidence.startswith("BLEU of unseen pairs 12.02 against 10.04 (+1.98, ")
        assert "resampled by document, of which there are 30" in verdict.evidence
        assert verdict.conditions.endswith("; converged; 80 of 100 test pairs")
    for run in records:
        del run["unseen"]
        run["histories"] = {}
    for claim in claims:
        ((_, verdict),) = judgement.judge([claim], results, Path("no benchmarks"))
        assert verdict.status == judgement.NOT_MEASURED


def test_a_history_without_unseen_pairs_does_not_have_those_of_its_run():
    run = run_with_unseen("cache", 1, 12.0, 20.0, 10.0)
    del run["histories"]["other"]["unseen"]
    _, other = history_scores.with_histories([run])
    assert other["row"] == "cache:other" and metrics.unseen_bleu(other) is None


def test_few_test_pairs_of_training_change_nothing(documents):
    root, corpus, _ = documents
    assert reproduce.main(started_command(root, corpus, "--rows=late")) == 0
    (line, _) = (root / "results" / "vi-en-cpu.jsonl").read_text().splitlines()
    assert "unseen" not in json.loads(line)


@pytest.mark.slow
def test_raw_documents_are_prepared_trained_on_and_decoded_with_each_history(toy_root, monkeypatch):
    root, corpus = toy_root
    path = root / "data" / "toy.json"
    manifest = json.loads(path.read_text())
    manifest["vocabularies"] = None
    manifest["files"] = [
        {"path": f"{split}.{suffix}", "urls": ["https://h/f"], "lines": lines}
        for split, lines in (("train", 120), ("dev", 6), ("test", 6))
        for suffix in ("src", "tgt", "docs")
    ]
    path.write_text(json.dumps(manifest))
    (corpus / "test.docs").write_text("4\n4\n4\n7\n7\n7\n")
    common = {
        "num_units": 8, "encoder_type": "bi", "unit_type": "gru", "subword_option": "bpe",
        "steps_per_stats": 2, "steps_per_external_eval": 4, "beam_width": 2, "num_train_steps": 4,
        "batch_size": 8, "num_attention_images": 0, "projection_bias": True,
    }  # fmt: skip
    rows = (Row("rnnsearch", "A"), Row("cache", "B", start="rnnsearch"))
    cells = {"rnnsearch": {}, "cache": {"trainable_parameters": "cell/gate_*"}}
    for name, more in cells.items():
        settings_of(root, name).write_text(json.dumps({"cell": name, **common, **more}))
    table = TABLES["vi-en"]._replace(rows=rows, bpe_merges={"cpu": 50})
    monkeypatch.setitem(TABLES, "vi-en", table)
    assert reproduce.main(started_command(root, corpus)) == 0
    folder = root / "runs" / "vi-en" / "cpu"
    assert (folder / "corpus" / "train.docs").read_text() == (corpus / "train.docs").read_text()
    lines = (root / "results" / "vi-en-cpu.jsonl").read_text().splitlines()
    results = {result["row"]: result for result in map(json.loads, lines)}
    assert "histories" not in results["rnnsearch"]
    for history in ("reference", "other"):
        scores = results["cache"]["histories"][history]
        assert len(scores["resampled"]["test"]["bleu"]) == significance.RESAMPLES
        output = folder / "cache" / f"output_test.{history}"
        assert len(output.read_text().splitlines()) == 6

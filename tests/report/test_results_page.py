"""The page: complete without runs, safe against markup in sentences, figures on request."""

import json
import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.html_reader import read
from helpers.records import record, write_results
from helpers.traces import cache_trace

from tfmann.cli import report as command
from tfmann.config import HParams
from tfmann.data.documents import document_starts
from tfmann.data.text_files import write_lines
from tfmann.evaluation.trace import Trace
from tfmann.papers.tables import TABLES
from tfmann.report import figures, results_page, sentences
from tfmann.report.runs import translated_test

SOURCES = ["a b c d .", "<b>a</b> & x y z .", "c d e f .", "d e f g .", "e f g h ."]
REFERENCES = [line.upper() for line in SOURCES]


@pytest.fixture
def runs(tmp_path):
    """Finished runs of two systems of the synthetic tense table, in documents."""
    prefix = tmp_path / "corpus" / "test"
    prefix.parent.mkdir()
    write_lines(f"{prefix}.src", SOURCES)
    write_lines(f"{prefix}.tgt", REFERENCES)
    write_lines(f"{prefix}.docs", ["1", "1", "1", "2", "2"])
    write_lines(f"{prefix}.align", ["0-0 1-1"] * 5)
    for row, cell in (("rnnsearch", "rnnsearch"), ("cache", "cache")):
        folder = tmp_path / "runs" / "synthetic-tense" / "tiny" / row
        os.makedirs(folder / "best_bleu")
        settings = {"test_prefix": str(prefix), "src": "src", "tgt": "tgt", "cell": cell,
                    "bleu_lowercase": False, "bleu_tokenize": "none"}  # fmt: skip
        (folder / "results.json").write_text(
            json.dumps({"hparams": settings, "date": row, "steps": 1})
        )
        translations = REFERENCES[:] if row == "cache" else [f"{line} AGAIN" for line in REFERENCES]
        write_lines(folder / "output_test", translations)
    return tmp_path / "runs"


class Model:
    """Stands in for models: remembers what it was given."""

    def __init__(self):
        self.calls = []

    def __call__(self, folder, pairs, documents):
        self.calls.append((Path(folder).name, list(pairs), documents))
        if Path(folder).name == "cache":
            return [cache_trace() for _ in pairs]
        arrays = {"alignments": np.eye(2)}
        forced = SimpleNamespace(source_tokens=["a", "b"], tokens=["A", "B"], diagnostics=arrays,
                               source_steps=0, slots=None, word_memory=None,
                               previous_tokens=())  # fmt: skip
        return [Trace(forced) for _ in pairs]


def render_page(runs, tracer=None, results=None, **changes):
    expected = results_page.ExampleOptions(str(runs), **changes)
    return results_page.render_page(
        results or runs / "none", expected, tracer, lambda message: None
    )


def test_a_page_without_runs_or_results(tmp_path):
    reader = read(render_page(tmp_path))
    text = "".join(reader.text)
    assert "There are no finished runs" in text
    for name, table in TABLES.items():
        assert table.title in text, name
    assert "NTM-style attention" in text and "23.6" in text  # the paper's own figures are shown
    assert set(re.findall(r"#[\w-]+", " ".join(reader.links))) <= {f"#{i}" for i in reader.ids}


def test_what_is_shown_of_results(tmp_path):
    scores = {"history": [{"step": 7, "dev_ppl": 9.0, "dev_bleu": 4.5}]}
    scores["interval"] = {"mean": 10.1, "ci": 0.6, "signature": "boot"}
    results = write_results(tmp_path / "r", "vi-en-cpu", record("luong", 10.0, **scores))
    page = render_page(tmp_path, results=results)
    text = "".join(read(page).text)
    assert "10.00 [9.50, 10.70]" in text and "signature of the interval: boot" in text
    assert "4.50 at 7 updates" in page and "9.00 at 7 updates" in page
    assert results_page.render_results(results) in page


def test_sentences_of_all_systems(runs):
    page = render_page(runs)
    text = "".join(read(page).text)
    assert "<b>a</b> & x y z ." in text and "<b>a</b>" not in page  # shown, not obeyed
    assert "<ins>AGAIN</ins>" in page  # what the baseline has and the reference has not
    assert "<del>AGAIN</del>" in page  # missing from the other, next to the baseline
    assert "img" not in page.split("<main>")[1]


def test_sentences_are_chosen_inside_documents(runs):
    test = translated_test(TABLES["synthetic-tense"], str(runs / "synthetic-tense" / "tiny"))
    assert [run.name for run in test.runs] == ["rnnsearch", "cache"]
    assert sentences.choose_sentences(test, 8) == [1, 2, 4]
    assert sentences.choose_sentences(test, 1) == [1]
    (comparison,) = sentences.compare_systems(test, [2])
    assert comparison.context == [(SOURCES[0], REFERENCES[0]), (SOURCES[1], REFERENCES[1])]
    assert sentences.compare_systems(test, [4])[0].context == [(SOURCES[3], REFERENCES[3])]


def test_the_first_seed_that_has_ended_is_shown(runs):
    folder = runs / "synthetic-tense" / "tiny"
    for seed in (10, 3):
        shutil.copytree(folder / "cache", folder / f"cache-seed{seed}")
    shutil.rmtree(folder / "cache")
    test = translated_test(TABLES["synthetic-tense"], str(folder))
    assert test.runs[1].title == "+ continuous cache, 25 slots (seed 3)"
    assert test.runs[1].folder == str(folder / "cache-seed3")
    (folder / "cache-seed3" / "output_test").unlink()
    test = translated_test(TABLES["synthetic-tense"], str(folder))
    assert test.runs[1].folder == str(folder / "cache-seed10")


def test_omitted_words_are_reported(runs):
    folder = runs / "synthetic-tense" / "tiny"
    write_lines(folder / "cache" / "output_test", ["B", *REFERENCES[1:]])
    test = translated_test(TABLES["synthetic-tense"], str(folder))
    first, second = sentences.compare_systems(test, [0])[0].systems
    assert (first.under_translated, second.under_translated) == ([], ["a"])


def test_runs_that_do_not_fit_are_left_out(runs):
    folder = runs / "synthetic-tense" / "tiny"
    write_lines(folder / "cache" / "output_test", REFERENCES[:2])  # of another test
    test = translated_test(TABLES["synthetic-tense"], str(folder))
    assert [run.name for run in test.runs] == ["rnnsearch"]
    (runs.parent / "corpus" / "test.src").unlink()
    assert translated_test(TABLES["synthetic-tense"], str(folder)) is None
    assert "There are no finished runs" in render_page(runs)


def test_figures_are_drawn_once(runs):
    model = Model()
    page = render_page(runs, model, number=3, drawn=2)
    read(page)
    (base, pairs, documents), (cache, long, ids) = model.calls
    assert (base, documents) == ("rnnsearch", None)
    assert pairs == [(SOURCES[i], f"{REFERENCES[i]} AGAIN") for i in (1, 2)]  # its own words
    assert (cache, ids) == ("cache", [0, 0, 0, 3, 3]) and len(long) == 5
    assert page.count("data:image/png;base64,iVBOR") == 2 + 2 + 1  # attention, cache, recency
    assert "Over the documents above and those of the first sentences of the set" in page
    for meaning in ("attention", "cache", "recency"):
        assert figures.caption(meaning).replace("&", "&amp;") in page
    assert render_page(runs, model, number=3, drawn=2) == page and len(model.calls) == 2
    render_page(runs, model, number=3, drawn=1)  # another sentence
    assert len(model.calls) == 4


def test_figures_of_other_text_are_drawn_again(runs):
    """Its translation may be the same; a cache was filled by the sentences before it."""
    model, folder = Model(), runs / "synthetic-tense" / "tiny"
    render_page(runs, model, number=1, drawn=1)
    write_lines(folder / "cache" / "output_test", ["X", *REFERENCES[1:]])
    write_lines(runs.parent / "corpus" / "test.src", [*SOURCES[:1], "q r .", *SOURCES[2:]])
    render_page(runs, model, number=1, drawn=1)
    assert [name for name, *_ in model.calls] == ["rnnsearch", "cache"] * 2
    assert model.calls[3][1][:2] == [(SOURCES[0], "X"), ("q r .", REFERENCES[1])]


def test_figures_of_another_memory_of_words_are_drawn_again(runs):
    model, memory = Model(), runs.parent / "memory.npz"
    settings = HParams(lexical_memory=str(memory), src="src", tgt="tgt").as_dict()
    path = runs / "synthetic-tense" / "tiny" / "rnnsearch" / "hparams.json"
    path.write_text(json.dumps(settings))
    for content in ("one", "one", "another"):
        if not memory.exists() or memory.read_text() != content:
            memory.write_text(content)
        render_page(runs, model, number=1, drawn=1)
    assert [name for name, *_ in model.calls] == ["rnnsearch", "cache", "rnnsearch"]


def test_figures_that_cannot_be_kept_are_on_the_page(runs):
    (runs / "synthetic-tense" / "tiny" / "cache" / figures.CACHE_FILE).mkdir()
    log, options = [], results_page.ExampleOptions(str(runs), number=1, drawn=1)
    page = results_page.render_page(runs, options, Model(), log.append)
    assert page.count("data:image/png;base64,iVBOR") == 3
    assert [line for line in log if "are not kept: cannot write" in line]


def test_a_neural_cache_is_drawn_in_its_documents(runs):
    model, path = Model(), runs / "synthetic-tense" / "tiny" / "rnnsearch" / "results.json"
    results = json.loads(path.read_text())
    results["hparams"]["neural_cache_size"] = 3
    path.write_text(json.dumps(results))
    render_page(runs, model, number=1, drawn=1)
    (base, pairs, documents), _ = model.calls
    assert (base, documents) == ("rnnsearch", [0, 0, 0]) and len(pairs) == 3
    (runs.parent / "corpus" / "test.docs").unlink()  # no blank line: the text is one document
    render_page(runs, model, number=1, drawn=1)
    base, pairs, documents = model.calls[2]
    assert (base, documents) == ("rnnsearch", [0] * 5) and len(pairs) == 5


def test_documents_that_share_an_id_are_not_drawn_as_one():
    starts = document_starts([7, 7, 8, 8, 7, 7]).tolist()
    assert figures._whole_documents(starts, [5]) == [4, 5]


def test_figures_of_a_model_that_cannot_be_loaded_are_missing(runs):
    from tfmann.errors import UserError

    def broken(*_):
        raise UserError("no model")

    log = []
    page = results_page.render_page(
        runs, results_page.ExampleOptions(str(runs)), broken, log.append
    )
    assert "img" not in page.split("<main>")[1]
    assert "no model" in log[1]


def test_names_of_figures():
    assert figures.caption("read_head_0").startswith("read head 0: its address")
    assert figures.caption("write_head_1").startswith("write head 1: its address")


def test_a_synthetic_page_has_no_real_sentences(runs):
    real = runs / "multi30k" / "cpu"
    real.parent.mkdir()
    os.rename(runs / "synthetic-tense" / "tiny", real)
    assert "AGAIN" in render_page(runs)
    assert "AGAIN" not in render_page(runs, synthetic_only=True)


def test_the_command(runs, tmp_path, capsys, monkeypatch):
    results = write_results(tmp_path / "results", "vi-en-cpu", record("luong"))
    model = Model()
    monkeypatch.setattr(command, "_tracer", model)
    argv = ["page", f"--out_dir={runs}", f"--results_dir={results}"]
    assert command.main([*argv, "--nofigures"]) == 0 and not model.calls
    page = (runs / "report.html").read_text("utf-8")
    assert "AGAIN" in page and "base64" not in page
    output = tmp_path / "there" / "p.html"
    assert command.main([*argv, f"--output={output}", "--sentences=2", "--drawn=1"]) == 0
    assert "base64" in output.read_text("utf-8") and "p.html (0." in capsys.readouterr().err
    for wrong, status in (("--drawn=-1", 2), ("--results_dir=nowhere", 1)):
        assert command.main([*argv, wrong]) == status
        assert capsys.readouterr().err.startswith("tfmann: ")


def test_sentences_of_runs_that_are_gone_are_kept_on_request(runs, tmp_path, monkeypatch, capsys):
    results = write_results(tmp_path / "results", "vi-en-cpu", record("luong"))
    monkeypatch.setattr(command, "_tracer", Model())
    page = tmp_path / "page.html"
    argv = ["page", f"--out_dir={runs}", f"--results_dir={results}", f"--output={page}"]
    assert command.main([*argv, "--keep"]) == 1  # there is none yet
    assert str(page) in capsys.readouterr().err
    assert command.main(argv) == 0
    before = page.read_text("utf-8")
    assert "AGAIN" in before and "base64" in before
    assert command.main([*argv, "--keep"]) == 0 and page.read_text("utf-8") == before
    os.rename(runs / "synthetic-tense", tmp_path / "elsewhere")
    for _ in range(2):
        assert command.main([*argv, "--keep"]) == 0
        read(page.read_text("utf-8"))
        assert page.read_text("utf-8").split() == before.split()
    of_real_corpus = before.replace("sentences-synthetic-tense-tiny", "sentences-multi30k-cpu")
    page.write_text(of_real_corpus, "utf-8")
    assert command.main([*argv, "--keep", "--synthetic"]) == 0
    assert "AGAIN" not in page.read_text("utf-8")  # sentences of a real corpus are not shown
    page.write_text(before, "utf-8")
    assert command.main(argv) == 0 and "AGAIN" not in page.read_text("utf-8")


def test_runs_that_have_not_ended_are_named(runs, tmp_path, capsys):
    folder = runs / "synthetic-tense" / "tiny"
    for row, step in (("cache", 0), ("summary-seed2", 30)):
        os.makedirs(folder / row / "checkpoints" / f"step-{step:08d}")
        (folder / row / "hparams.json").write_text(json.dumps({"num_train_steps": 50}))
    os.makedirs(folder / "summary-seed2" / "checkpoints" / "step-00000040.tmp1")
    argv = ["page", f"--output={tmp_path / 'p.html'}", "--nofigures"]
    assert command.main([*argv, f"--out_dir={runs}"]) == 0
    first, *rest = capsys.readouterr().err.splitlines()
    assert "summary-seed2 has not ended (update 30 of 50)," in first
    resumes = "tfmann reproduce synthetic-tense --scale=tiny --rows=summary --seeds=2"
    assert f"`{resumes} --out_dir={runs}`" in first
    assert len(rest) == 1 and "p.html (" in rest[0]
    assert command.main([*argv, f"--out_dir={folder}"]) == 0
    assert f"{folder} has no run of a table" in capsys.readouterr().err

"""`tfmann report memory`: which files for which model, which documents, refusals."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest
from helpers.command_line import ROOT, tree, write_model
from helpers.traces import SOURCE, trace_of

from tfmann import api, config
from tfmann.cli import report as command
from tfmann.data.text_files import write_lines
from tfmann.report import gallery
from tfmann.visualization import cache_figures, image_files, sentence_figures

SOURCES = ["der hund", "die katze sieht", "größe một chó und", "der", "und hund 。"]
REFERENCES = ["DER HUND", "KATZE DIE", "MỘT CHÓ", "DER HUND SIEHT", "HUND"]
DOCS = ["4", "4", "4", "9", "9"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Folders by the kind of the model."""
    kinds = {
        "cache": ("rnnsearch", {"cell": "cache", "cache_size": 4}),
        "rounds": ("kvmematt-3", {"num_rounds": 2}),
        "luong": ("luong", {}),
        "summary": ("rnnsearch", {"cell": "summary"}),
    }
    return {
        kind: write_model(tmp_path_factory.mktemp(kind), variant, **changes)
        for kind, (variant, changes) in kinds.items()
    }


@pytest.fixture(scope="module")
def loaded_models():
    """Models that are loaded, by name: each compiles once."""
    return {}


@pytest.fixture(autouse=True)
def load_once(loaded_models, monkeypatch):
    load = api.load

    def once(out_dir, ckpt=None, log=print):
        if (out_dir, ckpt) not in loaded_models:
            loaded_models[out_dir, ckpt] = load(out_dir, ckpt, log)
        return loaded_models[out_dir, ckpt]

    monkeypatch.setattr(api, "load", once)


@pytest.fixture
def texts(tmp_path):
    """Paths of the files, written."""
    paths = {}
    for name, lines in (("input", SOURCES), ("reference", REFERENCES), ("docs", DOCS)):
        paths[name] = str(tmp_path / name)
        write_lines(paths[name], lines)
    return paths


def run(model, tmp_path, sentence, **flags):
    argv = ["memory", f"--out_dir={model}", f"--sentence={sentence}"]
    argv += [f"--figures={tmp_path / 'figures'}", *(f"--{k}={v}" for k, v in flags.items())]
    return command.main(argv)


def drawn_files(tmp_path):
    folder = tmp_path / "figures"
    for name in os.listdir(folder):
        if name.endswith(".png"):
            assert (folder / name).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    return set(os.listdir(folder))


def test_a_model_with_a_cache(models, texts, tmp_path, capsys):
    assert run(models["cache"], tmp_path, 2, **texts) == 0
    files = {"sentence_2_attention.png", "sentence_2_cache.png", "sentence_2_cache.md"}
    assert drawn_files(tmp_path) == {*files, "recency.png"}
    stderr = capsys.readouterr().err
    assert all(name in stderr for name in files)
    # four slots, of which the document's first two sentences (6 words) have filled all
    table = (tmp_path / "figures" / "sentence_2_cache.md").read_text(encoding="utf-8")
    traces = api.load(str(models["cache"])).traces(zip(SOURCES, REFERENCES), map(int, DOCS))
    assert table == cache_figures.cache_table(traces[2].slots)
    rows = [[cell.strip(" `") for cell in row.split("|")[1:-1]] for row in table.splitlines()[2:]]
    assert rows == [
        ["1", "</s>", "0"], ["2", "DIE", "1"], ["3", "KATZE", "2"], ["4", "HUND", "4"],
    ]  # fmt: skip


def test_recency_is_of_all_sentences(models, texts, tmp_path, monkeypatch):
    recencies = {}
    original = cache_figures.recency_figure

    def draw(averages, name):
        recencies[name] = averages
        return original(averages, name)

    monkeypatch.setattr(cache_figures, "recency_figure", draw)
    assert run(models["cache"], tmp_path, 4, **texts) == 0
    traces = api.load(str(models["cache"])).traces(zip(SOURCES, REFERENCES), map(int, DOCS))
    assert [len(cache_figures.by_recency(trace.slots)) for trace in traces] == [0, 3, 4, 0, 4]
    assert list(recencies) == ["input"]
    np.testing.assert_allclose(recencies["input"], cache_figures.recency(traces), rtol=1e-6)
    # of three sentences the first has but three filled slots
    sums = sum(traces[i]["cache_match"][:, np.argmin(traces[i].slots.ages)].sum() for i in (2, 4))
    assert recencies["input"].shape == (4,) and sums > 0


def test_without_a_reference_its_own_translation_is_drawn(models, texts, tmp_path):
    del texts["reference"], texts["docs"]
    write_lines(texts["input"], ["der", "die katze", "", "und"])
    for sentence in (1, 3):
        assert run(models["cache"], tmp_path, sentence, input=texts["input"]) == 0
    files = drawn_files(tmp_path)
    assert {"sentence_1_cache.png", "sentence_3_cache.md", "recency.png"} <= files
    assert "sentence_3_cache.png" not in files  # a blank line ends a document
    model = api.load(str(models["cache"]))
    first = next(model.translate(["der"]))[0]
    table = (tmp_path / "figures" / "sentence_1_cache.md").read_text(encoding="utf-8")
    assert all(f"`{token}`" in table for token in {*first.tokens[-4:]})


def test_an_empty_cache_is_reported(models, texts, tmp_path, capsys):
    assert run(models["cache"], tmp_path, 3, **texts) == 0
    assert "the cache is empty when sentence 3 begins" in capsys.readouterr().err
    assert drawn_files(tmp_path) == {
        "sentence_3_attention.png",
        "sentence_3_cache.md",
        "recency.png",
    }
    for name in ("input", "reference", "docs"):
        write_lines(texts[name], [{"input": "der", "reference": "DER", "docs": "1"}[name]])
    assert run(models["cache"], tmp_path, 0, **texts) == 0
    assert "the cache is empty when every sentence begins" in capsys.readouterr().err


def test_a_model_of_rounds_has_no_cache_and_says_so(models, texts, tmp_path, capsys):
    del texts["docs"]
    assert run(models["rounds"], tmp_path, 1, **texts) == 0
    heads = {f"sentence_1_{kind}_head_{i}.png" for kind in ("read", "write") for i in range(2)}
    assert drawn_files(tmp_path) == {"sentence_1_attention.png", "sentence_1_rounds.png", *heads}
    assert "the model has no cache" in capsys.readouterr().err
    assert run(models["luong"], tmp_path, 0, **texts) == 0
    assert "sentence_0_attention.png" in drawn_files(tmp_path)


def test_only_what_the_sentence_needs_goes_through_the_model(models, texts, tmp_path, monkeypatch):
    calls = []
    traces = api.Model.traces

    def spy(self, pairs, documents=None):
        pairs = list(pairs)
        calls.append((pairs, documents))
        return traces(self, pairs, documents)

    monkeypatch.setattr(api.Model, "traces", spy)
    assert run(models["summary"], tmp_path, 4, **texts) == 0
    del texts["docs"]
    assert run(models["luong"], tmp_path, 4, **texts) == 0
    write_lines(texts["input"], ["der", "", "und", "die", "der"])
    assert run(models["summary"], tmp_path, 3, **texts) == 0
    pairs = list(zip(SOURCES, REFERENCES))
    assert calls[0] == (pairs[3:], [9, 9])
    assert calls[1] == (pairs[4:], None)
    assert calls[2] == ([("und", REFERENCES[2]), ("die", REFERENCES[3])], None)


@pytest.mark.parametrize(
    ("changes", "status", "message"),
    [
        ({"sentence": 5}, 1, "--sentence=5: .*input has the sentences 0 to 4"),
        ({"sentence": -1}, 1, "--sentence=-1"),
        ({"reference": ["A"]}, 1, "unequal line counts: .*input has 5, .*reference has 1"),
        ({"docs": ["1"] * 6}, 1, "unequal line counts: .*input has 5, .*docs has 6"),
        ({"docs": ["1"] * 6, "reference": None}, 1, "unequal line counts: .*docs has 6"),
        ({"docs": ["one"] * 5, "reference": None}, 1, "docs, line 1: expected the document's id"),
        ({"input": [], "reference": None, "docs": None}, 1, "input is empty"),
        ({"input": ["a", "", "c", "d", "e"], "sentence": 1}, 1, "line of .*input is blank"),
        ({"model": "luong"}, 2, "--docs has no effect: the cell 'luong'"),
        ({"model": "nowhere"}, 1, "nowhere holds no trained model"),
        ({"input": None}, 1, "no such file: .*input"),
        ({"figures": "input"}, 1, "cannot create the folder"),
    ],
)
def test_refusals(models, texts, tmp_path, capsys, changes, status, message):
    flags = dict(texts)
    for name, lines in changes.items():
        if name == "input" and lines is None:
            os.unlink(texts["input"])
        elif name in texts and lines is None:
            del flags[name]
        elif name in texts:
            write_lines(texts[name], lines)
    before = tree(tmp_path)
    folder = models.get(changes.get("model", "cache"), "nowhere")
    argv = ["memory", f"--out_dir={folder}", f"--sentence={changes.get('sentence', 1)}"]
    argv += [f"--figures={tmp_path / changes.get('figures', 'figures')}"]
    assert command.main([*argv, *(f"--{k}={v}" for k, v in flags.items())]) == status
    stderr = capsys.readouterr().err
    assert stderr.startswith("tfmann: ") and stderr.count("\n") == 1, stderr
    assert re.search(message, stderr), stderr
    assert tree(tmp_path) == before


# --- gallery ------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_a_gallery_has_the_most_telling_figure_of_each_cell(models, tmp_path):
    runs, out = tmp_path / "runs", tmp_path / "out"
    runs.mkdir()
    for kind, folder in models.items():
        (runs / kind).symlink_to(folder)
    for name, lines in (("src", SOURCES), ("tgt", REFERENCES), ("docs", DOCS)):
        write_lines(str(tmp_path / f"text.{name}"), lines)
    argv = ["gallery", f"--out_dir={runs}", f"--prefix={tmp_path / 'text'}", f"--output={out}"]
    assert command.main([*argv, "--sentence=2"]) == 0
    assert sorted(os.listdir(out)) == ["cache.png", "kvmematt.png", "luong.png", "summary.png"]
    for kind, cell, name in (("cache", "cache", "cache"), ("rounds", "kvmematt", "rounds")):
        model = api.load(str(runs / kind), log=lambda _: None)
        ids = map(int, DOCS) if kind == "cache" else None
        trace = model.traces(zip(SOURCES, REFERENCES), ids)[2]
        figure = dict(sentence_figures.sentence_figures(trace, cell))[name]
        image_files.save_figure(figure, tmp_path / "wanted.png")
        assert (tmp_path / "wanted.png").read_bytes() == (out / f"{cell}.png").read_bytes()


def test_a_run_without_a_figure_or_with_a_cell_once_more_is_left_out(tmp_path):
    for name, lines in (("src", SOURCES), ("tgt", REFERENCES), ("docs", DOCS)):
        write_lines(str(tmp_path / f"text.{name}"), lines)
    runs = {"bare": "luong", "drawn": "rnnsearch", "again": "rnnsearch"}
    traces = {"bare": trace_of(), "drawn": trace_of(alignments=(len(SOURCE),))}
    traces["again"] = traces["drawn"]
    log, prefix = [], str(tmp_path / "text")
    gallery.write(runs, prefix, 1, str(tmp_path / "out"), lambda run, *_: [traces[run]], log.append)
    assert log == [
        "bare is left out: the cell luong has no figure",
        str(tmp_path / "out" / "rnnsearch.png"),
        "again is left out: drawn has the cell rnnsearch too",
    ]


def test_a_gallery_of_nothing_is_refused(models, tmp_path, capsys):
    for name in ("src", "tgt", "docs"):
        write_lines(str(tmp_path / f"text.{name}"), ["1"])
    argv = ["gallery", f"--out_dir={tmp_path}", f"--prefix={tmp_path / 'text'}"]
    for message in ("has no folder of a run", "has the sentences 0 to 0, not 1"):
        assert command.main([*argv, "--sentence=1", f"--output={tmp_path / 'out'}"]) == 1
        assert message in capsys.readouterr().err
        if not (tmp_path / "run").exists():
            (tmp_path / "run").symlink_to(models["luong"])
    assert not (tmp_path / "out").exists()


def test_the_page_of_models_shows_a_figure_of_every_cell():
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    images = re.findall(r'src="(figures/(\w+)\.png)"', page)
    assert sorted(cell for _, cell in images) == sorted(config.CELLS)
    assert all((ROOT / "docs" / path).read_bytes().startswith(b"\x89PNG") for path, _ in images)

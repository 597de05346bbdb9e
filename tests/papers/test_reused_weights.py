"""Rows without training: their settings, their weights, what is chosen, recorded and shown."""

import json
import shutil
from pathlib import Path

import pytest
from helpers.records import record, table, write_results
from helpers.toy_table import saved_records, started_command

from tfmann import config
from tfmann.data import fingerprints
from tfmann.data.text_files import iter_documents, iter_lines
from tfmann.papers import (
    inspections,
    processes,
    records,
    rendering,
    reproduce,
    reused_weights,
    search_choice,
    table_runs,
)
from tfmann.papers.table import Row, SearchGrid
from tfmann.papers.tables import TABLES, memories
from tfmann.papers.tables.memories import with_lexical_memory, with_neural_cache
from tfmann.report import curves
from tfmann.utils.run_folder import RunFolder

CACHE = SearchGrid(
    (("neural_cache_size", 5),),
    (("neural_cache_theta", (0.1, 1.0)), ("neural_cache_lambda", (0.1, 0.5))),
)
LEXICAL = SearchGrid((), (("lexical_memory_lambda", (0.1, 0.5)),), (("updates", 2),))
CACHE_CHOICES = [
    {"neural_cache_size": 5, "neural_cache_theta": theta, "neural_cache_lambda": share}
    for theta, share in ((0.1, 0.1), (0.1, 0.5), (1.0, 0.1), (1.0, 0.5))
]


def test_a_grid_has_all_combinations():
    assert CACHE.choices() == CACHE_CHOICES
    assert LEXICAL.choices() == [{"lexical_memory_lambda": 0.1}, {"lexical_memory_lambda": 0.5}]
    assert CACHE.reads_documents and not LEXICAL.reads_documents
    assert len(memories.NEURAL_CACHE.choices()) == 12


def test_rows_without_training_are_the_last_and_bring_no_row_with_them():
    a, b, c = Row("a", "A"), Row("b", "B", start="a"), Row("c", "C", weights="a", search=CACHE)
    of_rows = table(a, b, c)
    assert of_rows.with_starts([c, b]) == [a, b, c]
    assert of_rows.with_starts([c]) == [c]


def test_rows_without_training_stand_below_the_row_with_their_weights():
    found = set()
    for name, of_scales in TABLES.items():
        for scale in of_scales.scales:
            rows = of_scales.at(scale).rows
            names = [row.name for row in rows]
            for row in rows:
                assert bool(row.weights) == (row.search is not None)
                if row.weights:
                    found.add((name, row.name))
                    assert names.index(row.weights) < names.index(row.name)
                    assert row.settings == row.weights and not row.start
    assert found == {
        ("vi-en", "luong_neural_cache"),
        ("vi-en", "luong_lexical_memory"),
        ("multi30k", "luong_lexical_memory"),
        ("en-ja", "attn_lexical_memory"),
        *((name, "rnnsearch_neural_cache") for name in (
            "cache-subtitle", "bcontrast-de-en", "bcontrast-en-de", "synthetic-tense",
            "synthetic-senses",
        )),
    }  # fmt: skip


@pytest.fixture
def reused(started, monkeypatch):
    """A table in which two rows have the weights of a third; nothing runs."""
    root, corpus, trained = started
    rows = (
        Row("base", "base"),
        with_neural_cache("base")._replace(search=CACHE),
        with_lexical_memory("base")._replace(search=LEXICAL),
    )
    monkeypatch.setitem(TABLES, "vi-en", TABLES["vi-en"]._replace(rows=rows, baselines=("base",)))
    commands = []

    def run_module(module, flags, out_dir):
        commands.append((module, flags, out_dir))
        if module == "tfmann.cli.memorize":
            Path(flags["output"]).write_text("memory")
            return
        choices = [
            {name: value for name, value in choice.items() if name != "lexical_memory"}
            for choice in json.loads(flags["choices"])
        ]
        results = records.results_of(flags["weights"])
        for key in ("train_seconds", "words_per_second"):
            del results[key]
        results["hparams"].update(choices[-1])
        points = [{"settings": choice, "bleu": 1.0} for choice in choices]
        results["search"] = {"chosen": choices[-1], "dev": points, "weights_date": None}
        Path(out_dir).mkdir(parents=True, exist_ok=True)
        for split in ("dev", "test"):
            (Path(out_dir) / f"output_{split}").write_text("said it\n" * 6)
        (Path(out_dir) / "results.json").write_text(json.dumps(results))

    def decode(mode, out_dir, flags, name):
        commands.append((mode, flags, out_dir))
        shutil.copy(Path(out_dir) / "output_test", flags["inference_output_file"])

    monkeypatch.setattr(reused_weights, "run_module", run_module)
    monkeypatch.setattr(reused_weights, "has_best", lambda folder: True)
    monkeypatch.setattr(processes, "decode", decode)
    (corpus / "test.docs").write_text("1\n1\n1\n2\n2\n2\n")
    return root, corpus, trained, commands


def test_the_search_of_a_row_without_training_is_chosen_once(reused, capsys):
    root, corpus, trained, commands = reused
    command = started_command(root, corpus)
    assert reproduce.main(command) == reproduce.main(command) == 0
    assert [name for name, _ in trained] == ["base"]
    folder = root / "runs" / "vi-en" / "cpu"
    cache, memory = folder / "base_neural_cache", folder / "base_lexical_memory"
    chosen = {out_dir: flags for module, flags, out_dir in commands if "search_choice" in module}
    assert set(chosen) == {str(cache), str(memory)}
    for flags in chosen.values():
        assert flags["weights"] == str(folder / "base")
        assert flags["dev_prefix"] == str(corpus / "dev")
        assert flags["test_prefix"] == str(corpus / "test")
    file = str(memory / "lexical_memory.npz")
    assert json.loads(chosen[str(cache)]["choices"]) == CACHE_CHOICES
    assert json.loads(chosen[str(memory)]["choices"]) == [
        {"lexical_memory": file, "lexical_memory_lambda": share} for share in (0.1, 0.5)
    ]
    learned = [(flags, out_dir) for module, flags, out_dir in commands if "memorize" in module]
    ((flags, out_dir),) = learned
    assert (flags["output"], flags["updates"], out_dir) == (file, "2", str(folder / "base"))
    decoded = [(flags["document_history"], out) for mode, flags, out in commands if mode == "infer"]
    assert decoded == [("reference", str(cache)), ("other", str(cache))]
    out = capsys.readouterr().out
    assert "on the weights of base, in" in out
    assert "1 of 1 runs are left to train" in out and "all 1 runs have ended" in out
    assert "since the search" not in out


def test_a_memory_of_a_row_that_was_stopped_is_not_learned_again(reused):
    root, corpus, _, commands = reused
    command = started_command(root, corpus)
    assert reproduce.main(command) == 0
    (root / "runs" / "vi-en" / "cpu" / "base_lexical_memory" / "results.json").unlink()
    assert reproduce.main(command) == 0
    modules = [module.rpartition(".")[2] for module, *_ in commands]
    assert (modules.count("memorize"), modules.count("search_choice")) == (1, 3)


def test_a_choice_that_was_stopped_before_its_weights_changed_begins_again(reused, capsys):
    root, corpus, _, commands = reused
    command = started_command(root, corpus)
    assert reproduce.main(command) == 0
    folder = root / "runs" / "vi-en" / "cpu"
    (folder / "base_lexical_memory" / "results.json").unlink()
    results = json.loads((folder / "base" / "results.json").read_text())
    (folder / "base" / "results.json").write_text(json.dumps({**results, "date": "later"}))
    assert reproduce.main(command) == 0
    modules = [module.rpartition(".")[2] for module, *_ in commands]
    assert (modules.count("memorize"), modules.count("search_choice")) == (2, 3)
    assert "the search of base_lexical_memory is chosen anew" in capsys.readouterr().out


def test_weights_of_another_text_are_not_taken(reused, capsys):
    root, corpus, _, commands = reused
    assert reproduce.main(started_command(root, corpus, "--rows=base")) == 0
    base = root / "runs" / "vi-en" / "cpu" / "base"
    text = {f"{name}_prefix": str(corpus / name) for name in ("train", "dev", "test")}
    fingerprints.record(config.make({"src": "src", "tgt": "tgt", **text}), str(base), {})
    copy = shutil.copytree(corpus, root / "copy")
    for suffix in ("src", "tgt"):
        (copy / f"train.{suffix}").write_text("other\n" + (copy / f"train.{suffix}").read_text())
    assert reproduce.main(started_command(root, copy, "--rows=base_lexical_memory")) == 1
    assert f"is not the text of the run in {base}: give" in capsys.readouterr().err
    assert not commands


def test_a_row_without_training_is_recorded_and_shown(reused, monkeypatch, capsys):
    root, corpus, _, _ = reused
    monkeypatch.setattr(inspections, "measure", lambda corpus, out_dir, cell: {"statistics": []})
    assert reproduce.main(started_command(root, corpus)) == 0
    saved = saved_records(root)
    cache = saved["base_neural_cache"]
    assert (cache["weights"], cache["search"]["chosen"]) == ("base", CACHE_CHOICES[-1])
    assert len(cache["search"]["dev"]) == 4 and set(cache["histories"]) == {"reference", "other"}
    assert [test["baseline"] for test in cache["significance"]] == ["base"]
    assert "inspection" not in cache and "inspection" in saved["base"]
    assert "weights" not in saved["base"]
    out = capsys.readouterr().out
    line, *_ = (line for line in out.splitlines() if line.startswith("| + neural cache"))
    assert line.endswith("| 0.00M | +0 | - | - |")
    assert "\n- +N updates: in addition to those of base\n" in out
    assert (
        "\n- without training: base_neural_cache, on the weights of base; its search was chosen on "
        "dev: neural_cache_size 5, neural_cache_theta 1, neural_cache_lambda 0.5\n"
    ) in out


def test_searches_of_several_seeds_are_named():
    rows = (Row("a", "A"), Row("b", "B", weights="a", search=LEXICAL))
    shares = {1: 0.1, 2: 0.5, 3: 0.1}
    runs = [
        record("b", seed=seed, weights="a", search={"chosen": {"lexical_memory_lambda": share}})
        for seed, share in shares.items()
    ]
    for run in runs:
        del run["train_seconds"], run["words_per_second"]
    text = rendering.render(table(*rows), "cpu", [record("a"), *runs])
    assert (
        "on the weights of a; its search was chosen on dev: lexical_memory_lambda 0.1 (seed 1, 3); "
        "lexical_memory_lambda 0.5 (seed 2)"
    ) in text
    assert "| +0 | 3 | - | - |" in text
    assert curves.charts(table(*rows), runs) == []


def test_the_time_of_rows_without_training_is_not_estimated(tmp_path):
    reused = record("b", weights="a")
    del reused["train_seconds"]
    folder = write_results(tmp_path, "toy-cpu", reused, record("a", train_seconds=600))
    assert "about 10 min plus" in table_runs.estimate_time(["a"], 2, folder / "toy-cpu.jsonl")


def test_the_row_with_the_weights_must_have_ended(reused, capsys):
    root, corpus, trained, commands = reused
    command = started_command(root, corpus, "--rows=base_neural_cache", "--seeds=1,2")
    assert reproduce.main(started_command(root, corpus, "--rows=base")) == 0
    trained.clear()
    assert reproduce.main(command) == 1
    error = capsys.readouterr().err
    folder = root / "runs" / "vi-en" / "cpu" / "base-seed2"
    assert (
        "the row base_neural_cache has the weights of base, whose run has not ended in "
        f"{folder}: train it first, with --rows=base,base_neural_cache"
    ) in error
    assert not trained and not commands
    assert reproduce.main(command[:-1]) == 0
    assert not trained and saved_records(root)["base_neural_cache"]["weights"] == "base"


def test_weights_that_were_removed_are_missed(reused, monkeypatch, capsys):
    root, corpus, _, _ = reused
    monkeypatch.setattr(reused_weights, "has_best", lambda folder: False)
    assert reproduce.main(started_command(root, corpus)) == 1
    assert "runs/vi-en/cpu/base has none any more: remove it" in capsys.readouterr().err


def test_without_documents_a_row_that_reads_them_is_left_out(reused, capsys):
    root, corpus, _, _ = reused
    (corpus / "dev.docs").unlink()
    assert reproduce.main(started_command(root, corpus)) == 0
    assert set(saved_records(root)) == {"base", "base_lexical_memory"}
    text = (
        f"base_neural_cache: the search reads the previous sentences of a document, and there "
        f"is no {corpus / 'dev.docs'}"
    )
    assert f"left out: {text}\n" in capsys.readouterr().out
    assert reproduce.main(started_command(root, corpus, "--rows=base_neural_cache")) == 1
    assert f"tfmann: {text}; expected a line for each sentence" in capsys.readouterr().err


def test_changes_since_the_choice_are_named(reused, monkeypatch, capsys):
    root, corpus, _, _ = reused
    command = started_command(root, corpus)
    assert reproduce.main(command) == 0
    path = root / "runs" / "vi-en" / "cpu" / "base" / "results.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "date": "today"}))
    base, cache, lexical = TABLES["vi-en"].rows
    cache = cache._replace(search=CACHE._replace(varied=CACHE.varied[:1]))
    rows = (base, cache, lexical)
    monkeypatch.setitem(TABLES, "vi-en", TABLES["vi-en"]._replace(rows=rows))
    capsys.readouterr()
    assert reproduce.main(command) == 0
    out = capsys.readouterr().out
    ended = f"{path.parent} has ended again"
    assert f"of base_lexical_memory was chosen, {ended}: its run is left" in out
    others = "the settings to choose from are others"
    assert f"of base_neural_cache was chosen, {ended} and {others}: its run is left" in out


class Parrot:
    """A model whose translations are the references, of which a setting leaves words out."""

    def __init__(self, hparams, asked, kept=0):
        self.hparams, self._asked, self._kept = hparams, asked, kept

    def with_search(self, neural_cache_size, lexical_memory=""):
        return Parrot(self.hparams, self._asked, neural_cache_size)

    def translate(self, lines, documents):
        self._asked.append((self._kept, list(documents)))
        from tfmann.decoding.translation import Translation

        for line in lines:
            words = line.split()[: self._kept]
            yield [Translation(" ".join(words), 0.0, words, words, None)]


def test_a_choice_that_was_stopped_continues(tmp_path):
    from tfmann import config

    for side in "ab":
        (tmp_path / f"dev.{side}").write_text("one two three four five six\n" * 3)
    (tmp_path / "dev.docs").write_text("1\n1\n2\n")
    hparams = config.make({"src": "a", "tgt": "b", "dev_prefix": str(tmp_path / "dev")})
    asked = []
    choices = [{"neural_cache_size": kept, "lexical_memory": "file"} for kept in (4, 6, 5)]
    with RunFolder(str(tmp_path / "run"), lambda line: None) as folder:
        first = search_choice.measure(Parrot(hparams, asked), choices[:2], folder)
        points = search_choice.measure(Parrot(hparams, asked), choices, folder)
    assert asked == [(kept, [1, 1, 2]) for kept in (4, 6, 5)]
    assert points[:2] == first
    assert [point["settings"] for point in points] == [{"neural_cache_size": n} for n in (4, 6, 5)]
    assert points[1]["bleu"] == pytest.approx(100) and points[1]["length_ratio"] == 1
    # BP of 4 words for 6, and every n-gram right
    assert points[0]["bleu"] == pytest.approx(100 * 2.718281828 ** (1 - 6 / 4), abs=0.01)
    assert points[0]["bleu"] < points[2]["bleu"] < points[1]["bleu"]


@pytest.fixture
def small(toy_root, monkeypatch):
    """A row to train, and two on its weights, in documents that no manifest lists."""
    root, corpus = toy_root
    cache = CACHE._replace(varied=(("neural_cache_lambda", (0.2, 0.9)),))
    rows = (
        Row("luong", "base"),
        with_neural_cache("luong")._replace(search=cache),
        with_lexical_memory("luong")._replace(search=LEXICAL),
    )
    (corpus / "test.docs").write_text("1\n1\n1\n2\n2\n2\n")
    table = TABLES["vi-en"]._replace(rows=rows, baselines=("luong",))
    monkeypatch.setitem(TABLES, "vi-en", table)
    return root, corpus


@pytest.mark.slow
def test_rows_without_training_translate_as_the_model_with_these_settings(small):
    from tfmann import api

    root, corpus = small
    command = started_command(root, corpus)
    assert reproduce.main(command) == 0
    saved, folder = saved_records(root), root / "runs" / "vi-en" / "cpu"
    text = {name: list(iter_lines(corpus / f"{name}.src")) for name in ("dev", "test")}
    documents = {name: list(iter_documents(corpus / f"{name}.docs")) for name in ("dev", "test")}
    for row in ("luong_neural_cache", "luong_lexical_memory"):
        result, out_dir = saved[row], folder / row
        memory = {}
        if "lexical" in row:
            memory = {"lexical_memory": str(out_dir / "lexical_memory.npz")}
            assert result["memory"]["updates"] == 2
        points = result["search"]["dev"]
        assert len(points) == 2
        best = max(points, key=lambda point: point["bleu"])
        assert result["search"]["chosen"] == best["settings"]
        assert result["best"]["dev"][0]["value"] == pytest.approx(best["bleu"])
        model = api.load(str(folder / "luong"), **best["settings"], **memory)
        for name in ("dev", "test"):
            results = model.translate(text[name], documents=documents[name])
            translated = [n_best[0].text for n_best in results]
            assert translated == list(iter_lines(out_dir / f"output_{name}"))
        assert result["decoding"]["test"]["seconds"] > 0
        assert (result["steps"], "train_seconds" in result) == (4, False)
        of_run = json.loads((out_dir / "hparams.json").read_text())
        assert best["settings"].items() <= of_run.items()
        loaded = api.load(str(out_dir))  # a run like any other
        assert loaded.hparams.reads_documents == ("cache" in row)
        histories = {"reference", "other"} if "cache" in row else set()
        assert set(result.get("histories", ())) == histories
    points = folder / "luong_neural_cache" / "search_points.json"
    stamp = points.stat().st_mtime_ns
    (folder / "luong_neural_cache" / "results.json").unlink()  # stopped after the choice
    assert reproduce.main([*command, "--rows=luong_neural_cache"]) == 0
    assert points.stat().st_mtime_ns == stamp
    again = saved_records(root)["luong_neural_cache"]
    assert again["search"] == saved["luong_neural_cache"]["search"]

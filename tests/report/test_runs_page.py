"""The page of a user's own runs: which runs, their numbers, curves, sentences."""

import json
import re

import pytest
from helpers import chromium
from helpers.html_reader import read
from helpers.play_page import needs_browser
from helpers.report_page import tips
from helpers.traces import cache_trace

from tfmann import config
from tfmann.cli import report as command
from tfmann.data.text_files import write_lines
from tfmann.report import own_runs, runs_page
from tfmann.report.results_page import ExampleOptions
from tfmann.training import checkpoint

SOURCES = [f"<b>s{i}</b> a b c ." for i in range(8)]
REFERENCES = [line.upper() for line in SOURCES]
SCORES = [{"name": name, "value": value} for name, value in (("BLEU", 31.5), ("TER", 50.25))]


def history(*bleus, heads=("attention",)):
    return [
        {
            "step": 10 * number,
            "dev_ppl": 40.0 / number,
            "dev_bleu": bleu,
            "addresses": {
                head: {"entropy": 0.8 / number, "greatest_weight": 0.5, "distinct_positions": 0.25}
                for head in heads
            },
        }
        for number, bleu in enumerate(bleus, start=1)
    ]


def write_run(folder, prefix, translations, results=None, state=None, **settings):
    """A run's folder: finished with `results`, else with the `state` of a checkpoint."""
    folder.mkdir(parents=True)
    paths = {f"{name}_prefix": str(prefix / name) for name in ("dev", "test")}
    hparams = config.make({"src": "src", "tgt": "tgt", **paths, **settings})
    config.save(hparams, folder / "hparams.json")
    for name, lines in translations.items():
        write_lines(folder / f"output_{name}", lines)
    if results is not None:
        contents = {"hparams": hparams.as_dict(), "date": "today", **results}
        (folder / "results.json").write_text(json.dumps(contents))
        (folder / "best_bleu").mkdir()
    if state is not None:
        checkpoint.write(str(folder / "checkpoints" / "step-00000020"), {}, None, state)
    return folder


@pytest.fixture
def runs(tmp_path):
    """Two finished runs, one below a folder, and one that has not ended."""
    text, root = tmp_path / "text", tmp_path / "runs"
    text.mkdir()
    for name in ("dev", "test"):
        write_lines(text / f"{name}.src", SOURCES)
        write_lines(text / f"{name}.tgt", REFERENCES)
    (root / "checkpoints").mkdir(parents=True)
    numbers = {"steps": 20, "train_seconds": 120.0, "words": 2400, "parameters": 1_250_000}
    write_run(
        root / "luong", text, {"dev": REFERENCES, "test": [*REFERENCES[:4], *SOURCES[4:]]},
        {**numbers, "history": history(4.0, 6.5), "best": {"dev": SCORES, "test": SCORES}},
        num_units=16,
    )  # fmt: skip
    write_run(
        root / "ntm" / "seed-2", text, {"dev": REFERENCES, "test": SOURCES},
        {**numbers, "history": history(5.0, 3.0, heads=("read_head_0",)), "best": {"dev": SCORES}},
        num_units=32, cell="ntm", encoder_type="memory", init_weight=0.25,
    )  # fmt: skip
    state = {"step": 20, "position": (1, 0), "best_bleu": 2.0, "best_step": 10, "words": 600,
             "train_seconds": 60.0, "history": history(2.0)}  # fmt: skip
    write_run(root / "new", text, {"dev": SOURCES[:3]}, state=state, num_units=64, dev_sentences=3)
    write_run(root / "begun", text, {})
    return root


def render(root, tracer=None, log=lambda line: None, **options):
    return runs_page.render_page(ExampleOptions(str(root), **options), tracer, log)


def test_scores_and_settings_of_every_run_are_in_the_table(runs):
    left_out = []
    page = render(runs, log=left_out.append)
    text = " ".join("".join(read(page).text).split())
    luong, new, ntm = re.findall(r'<tr><th scope="row">(.*?)</tr>', page)[:3]
    cells = [[re.sub("<[^>]*>", "", c) for c in re.split("</t[hd]>", row)] for row in (luong, ntm)]
    assert cells[0][0] == "luong" and cells[1][0] == "ntm/seed-2"
    assert cells[0][2:13] == [
        "20", "6.50", "20", "20.00", "31.50", "–", "50.25", "31.50", "–", "50.25", "1.25",
    ]  # fmt: skip
    assert cells[0][13] == "20" and cells[1][2:6] == ["20", "5.00", "10", "40.00"]
    assert "cell=ntm" in cells[1][1] and "init_weight=0.25" in cells[1][1]
    assert "cell=luong" in cells[0][1] and "dev_prefix" not in text
    assert "20 of 12,000" in new
    assert [line for line in left_out if "begun is left out: it has no evaluation" in line]


def test_curves_have_the_evaluations_of_the_runs(runs):
    page = render(runs)
    entropy = "0.40 at 20 updates"  # of its attention
    assert {"6.50 at 20 updates", "6.50 at 2 minutes", entropy} <= set(tips(page)["luong"])
    assert "40.00 at 10 updates" in tips(page)["new"]
    heads = re.findall("<h3>(.*?)</h3>", page)
    assert heads == ["attention", "read head 0"]
    attention = page[page.index("<h3>attention") : page.index("<h3>read head 0")]
    assert "ntm/seed-2" not in attention


def test_sentences_are_those_that_runs_have_translated(runs):
    sets = own_runs.translated_sets(own_runs.find_runs(str(runs), print), print)
    assert [(title, [run.title for run in test.runs]) for title, test in sets] == [
        ("The test set", ["luong", "ntm/seed-2"]), ("The dev set", ["new"]),
    ]  # fmt: skip
    assert [len(test.sources) for _, test in sets] == [8, 3]
    (runs.parent / "text" / "test.src").unlink()
    left_out = []
    sets = own_runs.translated_sets(own_runs.find_runs(str(runs), print), left_out.append)
    assert [title for title, _ in sets] == ["The dev set"]
    assert len(left_out) == 2 and "sentences of" in left_out[0]


@pytest.mark.parametrize("suffixes", [["src", "tgt"], ["src"]])
def test_translations_of_more_sentences_than_there_are_now_are_left_out(runs, suffixes):
    for suffix in suffixes:
        write_lines(runs.parent / "text" / f"test.{suffix}", SOURCES[:6])
    left_out = []
    sets = own_runs.translated_sets(own_runs.find_runs(str(runs), print), left_out.append)
    assert [title for title, _ in sets] == ["The dev set"]
    assert len(left_out) == 2 and "translates 8 sentences" in left_out[0]


def test_figures_are_drawn_of_runs_that_have_weights(runs):
    calls = []

    def tracer(folder, pairs, documents):
        calls.append((folder, list(pairs), documents))
        return [cache_trace() for _ in pairs]

    page = render(runs, tracer, number=2, drawn=1)
    assert {folder for folder, *_ in calls} == {str(runs / "luong"), str(runs / "ntm/seed-2")}
    assert all(len(pairs) == 1 for _, pairs, _ in calls)
    assert "data:image/png;base64" in page
    read(page)


def test_a_finished_run_that_continues_shows_its_last_checkpoint(runs):
    state = {"step": 30, "position": (1, 0), "best_bleu": 7.0, "best_step": 30, "words": 900,
             "train_seconds": 90.0, "history": history(4.0, 6.5, 7.0)}  # fmt: skip
    checkpoint.write(str(runs / "luong" / "checkpoints" / "step-00000020"), {}, None, state)
    [run] = own_runs.find_runs(str(runs / "luong"), print)
    assert run.finished  # the checkpoint's folder is that of the results
    checkpoint.write(str(runs / "luong" / "checkpoints" / "step-00000030"), {}, None, state)
    [run] = own_runs.find_runs(str(runs / "luong"), print)
    assert not run.finished and run.results["steps"] == 30 and run.scores("test") == {}


@pytest.mark.parametrize("best_step", [10, 20])
def test_translations_of_other_weights_than_the_best_have_no_figures(runs, best_step):
    state = {"step": 20, "position": (1, 0), "best_bleu": 2.0, "best_step": best_step, "words": 600,
             "train_seconds": 60.0, "history": history(2.0, 2.0)}  # fmt: skip
    folder = runs / "new"
    checkpoint.write(str(folder / "checkpoints" / "step-00000020"), {}, None, state)
    checkpoint.write(str(folder / "best_bleu"), {}, None, state)
    traced, messages = [], []

    def tracer(folder, pairs, documents):
        traced.append(folder)
        return [cache_trace() for _ in pairs]

    render(folder, tracer, messages.append, number=2, drawn=1)
    assert traced == ([str(folder)] if best_step == 20 else [])
    assert len([m for m in messages if "not of its best weights" in m]) == (best_step == 10)
    render(folder, tracer, number=2, drawn=1)
    assert len(traced) == (best_step == 20)  # the figures are cached
    checkpoint.write(str(folder / "best_bleu"), {}, None, {**state, "words": 700})
    render(folder, tracer, number=2, drawn=1)
    assert len(traced) == 2 * (best_step == 20)  # of other weights


def test_two_sets_of_one_name_have_titles_that_differ(runs):
    other = runs.parent / "other"
    other.mkdir()
    for suffix in ("src", "tgt"):
        write_lines(other / f"test.{suffix}", SOURCES[:5])
    results = {"steps": 20, "history": history(4.0), "best": {}, "words": 0}
    write_run(runs / "other", other, {"test": SOURCES[:5]}, results)
    titles = re.findall("<summary>(The test set.*?)</summary>", render(runs))
    text = runs.parent / "text"
    assert titles == [
        f"The test set: {text}/test, 8 sentences", f"The test set: {other}/test, 5 sentences",
    ]  # fmt: skip


def test_gold_alignments_of_other_sentences_leave_the_set_out(runs):
    write_lines(runs.parent / "text" / "test.align", ["0-0 1-1"] * 8)
    assert "under-translated" in render(runs)
    left_out = []
    for line, count in (("0-9", 8), ("0-0", 7)):
        write_lines(runs.parent / "text" / "test.align", [line] * count)
        assert "The test set" not in render(runs, log=left_out.append)
    luong = [line for line in left_out if f"the sentences of {runs}/luong are left out" in line]
    assert "line 1: 0-9 is a link outside" in luong[0] and "test.align" in luong[1]


def test_the_best_evaluation_is_that_of_the_best_weights(runs):
    """After a change of what dev BLEU measures, the best of the old measure is no longer it."""
    path = runs / "luong" / "results.json"
    results = json.loads(path.read_text())
    results["history"] = history(9.0, 6.5, 6.0)
    for best_step, cells in ((20, ["6.50", "20", "20.00"]), (None, ["9.00", "10", "40.00"])):
        path.write_text(json.dumps({**results, "best_step": best_step}))
        row = re.search(r'<tr><th scope="row">luong</th>(.*?)</tr>', render(runs))[1]
        assert re.findall("<td>(.*?)</td>", row)[2:5] == cells


def test_a_run_that_holds_a_run_of_its_name_has_another_title(runs):
    outer = write_run(
        runs / "name", runs.parent / "text", {"test": SOURCES},
        {"steps": 20, "history": history(4.0), "best": {}, "words": 0}, num_units=8,
    )  # fmt: skip
    assert [run.title for run in own_runs.find_runs(str(outer), print)] == ["name"]
    (runs / "luong").rename(outer / "name")
    found = own_runs.find_runs(str(outer), print)
    assert {run.title: run.folder for run in found} == {
        ".": str(outer), "name": str(outer / "name"),
    }  # fmt: skip
    settings = own_runs.differing_settings(found)
    assert "num_units=8" in settings["."] and "num_units=16" in settings["name"]


def test_runs_behind_links_are_found_once(runs, tmp_path, capsys):
    before = {run.folder for run in own_runs.find_runs(str(runs), print)}
    (runs / "circle").symlink_to(runs)
    (runs / "luong_again").symlink_to(runs / "luong")
    assert {run.folder for run in own_runs.find_runs(str(runs), print)} == before
    (runs / "luong").rename(tmp_path / "elsewhere")
    (runs / "luong_again").unlink()
    (runs / "link").symlink_to(tmp_path / "elsewhere")
    titles = [run.title for run in own_runs.find_runs(str(runs), print)]
    assert "link" in titles and len(titles) == len(before)


def test_results_that_lack_a_number_are_shown_without_it(runs):
    path = runs / "luong" / "results.json"
    results = json.loads(path.read_text())
    del results["words"]
    del results["history"][0]["addresses"]["attention"]["entropy"]
    path.write_text(json.dumps(results))
    row = re.search(r'<tr><th scope="row">luong</th>(.*?)</tr>', render(runs))[1]
    assert re.findall("<td>(.*?)</td>", row)[-1] == "–"


@needs_browser
def test_a_long_name_of_a_run_does_not_widen_the_page(runs):
    (runs / "luong").rename(runs / ("luong_" + "with_a_long_name_" * 6))
    assert command.main(["runs", f"--out_dir={runs}", "--nofigures"]) == 0
    with chromium.chromium() as page:
        page.size(320, 700)
        page.open((runs / "runs.html").as_uri())
        assert page.run("document.querySelectorAll('.legend button').length")
        assert page.run("document.documentElement.scrollWidth") <= 320
        assert not page.errors


@needs_browser
def test_the_tip_of_a_point_names_its_run(runs):
    assert command.main(["runs", f"--out_dir={runs}", "--nofigures"]) == 0
    with chromium.chromium() as page:
        page.open((runs / "runs.html").as_uri())
        assert page.run("document.querySelectorAll('.legend button').length")
        shown = page.run("[...document.querySelectorAll('circle title')].map(t => t.textContent)")
        assert {"luong: 6.50 at 20 updates", "new: 40.00 at 10 updates"} <= set(shown)
        assert page.run("getComputedStyle(document.querySelector('circle')).r") == "3px"
        assert not page.errors


def test_one_run_shows_what_it_has_chosen(runs):
    [run] = own_runs.find_runs(str(runs / "luong"), print)
    assert run.title == "luong"
    settings = own_runs.differing_settings([run])["luong"]
    assert "num_units=16" in settings and "init_weight" not in settings


def test_the_command_writes_the_page(runs, tmp_path, capsys):
    argv = ["runs", f"--out_dir={runs}", "--nofigures"]
    assert command.main(argv) == 0
    assert (runs / "runs.html").stat().st_size > 1000
    for out_dir, words in (
        (tmp_path / "text", "has no run with an evaluation"),
        (tmp_path / "none", "there is no folder"),
    ):
        capsys.readouterr()
        output = tmp_path / "page.html"
        assert command.main(["runs", f"--out_dir={out_dir}", f"--output={output}"]) == 1
        assert words in capsys.readouterr().err and not output.exists()

"""The tables of docs/results and of the page have the numbers of results/, and no others."""

import html
import re
from pathlib import Path

import pytest
from helpers.records import alignment_scores, comparison, record, write_results

from tfmann.cli import report as command
from tfmann.errors import UserError
from tfmann.papers import markdown_blocks, rendering
from tfmann.papers.claim import UntestedClaim
from tfmann.papers.claims import CLAIMS
from tfmann.papers.tables import PAPERS, TABLES
from tfmann.report import results_page

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    path.name: path.read_text("utf-8") for path in markdown_blocks.pages(ROOT / "docs" / "results")
}
REGION = "<!-- results: {} -->\n{}<!-- end -->\n"


@pytest.fixture
def results(tmp_path):
    return write_results(
        tmp_path / "results", "vi-en-cpu", record("luong", 17.45),
        record("mad_1", 18.0, significance=[comparison("luong", 0.55, 3.0, 0.002, 0.004)]),
    )  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_are_what_the_results_say(page):
    filled = markdown_blocks.fill(PAGES[page], ROOT / "results")
    assert filled == PAGES[page], "run: tfmann report readme"


def test_every_table_is_on_one_page():
    names = re.findall("<!-- results: (.*) -->", "".join(PAGES.values()))
    recorded = {path.stem for path in (ROOT / "results").glob("*.jsonl")} & {
        f"{name}-{scale}" for name, table in TABLES.items() for scale in table.scales
    }
    assert len(names) == len({*names}) and {*names} >= {*recorded, "claims", "overview"}


def test_no_claim_about_a_paper_s_own_text_is_decided_yet():
    """As the page of claims says at its beginning."""
    decided = re.findall(r"^\| (?:holds|does not hold) \|.*", PAGES["claims.md"], re.MULTILINE)
    assert len(decided) > 20 and not any(": the paper's corpus" in line for line in decided)
    assert not any("a part of the paper's corpus" in line for line in decided)


def test_all_columns_are_what_the_results_say():
    text = (ROOT / "results" / "README.md").read_text("utf-8")
    assert rendering.render_all(ROOT / "results") == text


@pytest.fixture(scope="module")
def results_of_the_page():
    """The page's part about results/: claims, tables, curves."""
    return results_page.render_results(ROOT / "results")


def test_the_page_of_the_recorded_results_is_small(results_of_the_page):
    """It grows with the runs, by about 2 kB each, of which a record has 50."""
    assert len(results_of_the_page) < 1.5 * 2**20


@pytest.mark.parametrize(
    ("table", "note"),
    [("en-ja-cpu", "not IWSLT'07: 50,000 pairs of the Tanaka corpus"),
     ("cache-subtitle-cpu", "the first 600 of 2,959 episodes")],
)  # fmt: skip
def test_the_training_corpus_is_named_below_a_table_everywhere(table, note, results_of_the_page):
    region = "".join(PAGES.values()).split(f"<!-- results: {table} -->")[1].split("<!-- end -->")[0]
    assert f"train: {note}" in region
    panel = results_of_the_page.split(f'id="{table}"')[1].split("</details>")[0]
    assert f"<li>train: {note.replace(chr(39), '&#39;')}" in panel
    is_stand_in = note.startswith("not")
    for part in (region, panel):
        assert ("; a stand-in for the paper's corpus)" in html.unescape(part)) == is_stand_in
    claims = PAGES["claims.md"].split("<!-- results: claims -->")[1].split("<!-- end -->")[0]
    for line in claims.splitlines():
        for name, replaced in (("ro-en", "training text"), ("en-ja", "corpus")):
            is_named = f"a stand-in for the paper's {replaced}" in line
            assert is_named == (f"| {name}, scale cpu" in line)


def test_a_region_is_written_and_the_rest_left_alone(results):
    text = "before | 1\n" + REGION.format("vi-en-cpu", "old\n") + "after\n"
    new = markdown_blocks.fill(text, results)
    assert new.startswith("before | 1\n<!-- results: vi-en-cpu -->\nCollier & Beel 2019, Table 1")
    assert new.endswith("<!-- end -->\nafter\n") and "old" not in new
    assert "| attentional encoder-decoder | 23.3* | 17.45 | 0.900 | - |" in new
    assert "| M.A.D., 1 R/W head | 23.1 | 18.00 | 0.900 | +0.55 (+3.2%)†, p 0.002 / 0.004 |" in new
    assert "| NTM-style attention | 23.6 | not yet measured | - | - |" in new
    assert "\\* the paper's figure" in new and "†: both below 0.01" in new
    assert markdown_blocks.fill(new, results) == new


def test_columns_and_marks_of_a_short_table_are_explained(tmp_path):
    measured = {
        "tense": {"sentences": 40, "right": 10, "other_right": 8},
        "senses": {"nouns": 30, "right": 6}, **alignment_scores(reworded=None),
    }  # fmt: skip
    name = "synthetic-tense-tiny"
    folder = write_results(tmp_path / "results", name, record("rnnsearch", **measured))
    text = markdown_blocks.fill(REGION.format(name, ""), folder)
    (table, fold, notes) = text.split("\n\n")[1:4]
    assert fold.endswith("<summary>What the columns and marks mean</summary>")
    heading = table.splitlines()[0]
    assert "| ≤ 12.50 |" in table
    for column, note in (
        ("AER", "AER, soft AER: % by the attention in forced decoding of 4 references"),
        ("under-translated", "under-translated, reworded, over-translated: % of the 16 source"),
        ("under-translated", "≤: includes reworded words"),
        ("tense", "tense: % of 40 sentences"),
        ("senses", "senses: % of 30 ambiguous nouns"),
    ):
        assert f"| {column} |" in heading and note in notes


def test_missing_measurements_are_marked(results):
    text = markdown_blocks.fill(REGION.format("ro-en-cpu", ""), results)
    assert "Not yet measured." in text and "|" not in text


def test_claims_are_counted_and_listed(results):
    text = markdown_blocks.fill(REGION.format("claims", ""), results)
    assert "does not hold: 0; inconclusive: 2; holds: 0" in text
    assert "| paper | holds | does not hold | inconclusive | (one seed) |\n" in text
    assert "| Collier & Beel 2019 | - | - | 2 | 2 |\n" in text
    settled, inconclusive = text.split("<summary>Inconclusive claims, with what each lacks<")
    line = "| inconclusive | On Vi-En, the memory-augmented decoder with one head"
    assert line in inconclusive and line not in settled
    assert "| not yet measured |" not in text


def test_statements_that_no_record_can_test_are_listed_with_the_reason(results):
    text = markdown_blocks.fill(REGION.format("claims", ""), results)
    untested = [claim for claim in CLAIMS if isinstance(claim, UntestedClaim)]
    assert {claim.paper for claim in untested} == set(PAPERS)
    assert f", of which no record can test {len(untested)}.\n" in text
    _, listed = text.split("<summary>Statements of the papers that no record can test</summary>")
    for claim in untested:
        line = f"| {claim.text} | {claim.paper}, {claim.section} | {claim.missing} |"
        assert listed.count(line) == 1
    assert listed.count("\n|") == len(untested) + 2  # with the heading


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nothing", "expected '<!-- results: NAME -->'"),
        ("<!-- results: claims -->\n", "each followed by"),
        (REGION.format("vi-en", ""), "no results called 'vi-en'; expected claims, .*vi-en-cpu"),
    ],
)
def test_refusals(results, text, message):
    with pytest.raises(UserError, match=message):
        markdown_blocks.fill(text, results, "F")


def test_the_command_writes_once(results, tmp_path, capsys):
    path = tmp_path / "R.md"
    path.write_text(REGION.format("claims", ""))
    argv = ["readme", f"--readme={path}", f"--results_dir={results}"]
    assert command.main(argv) == 0 and "R.md is written" in capsys.readouterr().err
    before = path.read_bytes()
    assert command.main(argv) == 0 and "as the results have it" in capsys.readouterr().err
    assert path.read_bytes() == before
    folder = tmp_path / "pages"
    folder.mkdir()
    for name, text in {"1.md": "no block\n", "2.md": before.decode()}.items():
        (folder / name).write_text(text)
    assert command.main([*argv, f"--readme={folder}"]) == 0
    assert capsys.readouterr().err == f"{folder / '2.md'} is as the results have it\n"
    (folder / "2.md").unlink()
    for wrong in (
        [f"--readme={tmp_path / 'none'}"], [f"--readme={folder}"], ["--results_dir=nowhere"]
    ):  # fmt: skip
        assert command.main([*argv, *wrong]) == 1
        assert capsys.readouterr().err.startswith("tfmann: ")

"""The scores that the pages quote are those that stand in results/."""

import json
import re
import statistics
from pathlib import Path

import pytest

from tfmann.papers import metrics

ROOT = Path(__file__).resolve().parents[2]
TABLES = (
    "vi-en-cpu", "vi-en-gpu", "multi30k-cpu", "en-ja-cpu", "bcontrast-de-en-cpu",
    "cache-subtitle-cpu",
)  # fmt: skip
# Differences of recorded scores, and a score on dev that has no record.
UNRECORDED = {
    "knn.md": "1.36 3.56",
}
QUOTES = [  # page, its sections, files in results/, the least number that is taken for a score
    ("README.md", "Results", ("vi-en-gpu",), 3),
    ("docs/faq.md", "Does it run on a GPU", ("vi-en-gpu",), 3),
    ("docs/recipes.md", "Length|14,000|30,000|50,000|130,000|475,000", ("recipes", *TABLES), 3),
    ("docs/documents.md", "Add a neural cache", ("word_memories", "vi-en-cpu"), 3),
    ("docs/lexical_memory.md", "What it gives", ("word_memories", "vi-en-cpu"), 3),
    ("docs/results/knn.md", "An inv|A train|Which d|What a", ("translation_memory",), 1),
]


def read(name):
    text = (ROOT / "results" / f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def scores(value, key=""):
    """Yields the BLEU scores of a record, wherever they stand in it."""
    if isinstance(value, dict) and value.get("name", "BLEU") == "BLEU":
        yield from (s for k, v in value.items() for s in scores(v, key if key == "dev" else k))
    elif isinstance(value, list):
        yield from (score for item in value for score in scores(item, key))
    elif isinstance(value, float) and key in ("value", "bleu", "dev_bleu", "dev", "choices"):
        yield value


def means(records):
    """Yields the mean test BLEU of the seeds of a row, of the best and the averaged checkpoint."""
    runs = {}
    for record in records:
        for kind in ("best", "average"):
            if record.get(kind):
                key = record.get("table"), record.get("corpus"), record.get("row"), record["cell"]
                runs.setdefault((*key, record["steps"], kind), []).append(record[kind]["test"][0])
    yield from (statistics.fmean(score["value"] for score in seeds) for seeds in runs.values())


def prose(page):
    """Returns a page without the tables that a program writes."""
    return re.sub("^<!-- results:.*?^<!-- end -->", "", page, flags=re.MULTILINE | re.DOTALL)


def sections(page, headings):
    """Returns the sections of the prose whose headings begin so."""
    parts = re.split(r"^##+ ", prose(page), flags=re.MULTILINE)
    return "\n".join(part for part in parts[1:] if re.match(headings, part))


@pytest.mark.parametrize(("page", "headings", "files", "least"), QUOTES, ids=lambda x: str(x)[:20])
def test_quoted_scores_are_recorded(page, headings, files, least):
    text = sections((ROOT / page).read_text("utf-8"), headings)
    quoted = set(re.findall(r"(?<![\d.,+-])\d+\.\d\d(?![\d%])", text))
    records = [record for name in files for record in read(name)]
    recorded = [*scores(records), *means(r for r in records if "steps" in r)]
    unrecorded = UNRECORDED.get(Path(page).name, "").split()
    quoted = {number for number in quoted if float(number) >= least}
    assert quoted and set(unrecorded) <= quoted
    assert not quoted - {f"{score:.2f}" for score in recorded} - set(unrecorded)


@pytest.mark.parametrize(
    ("page", "file"),
    [
        ("multi30k", "multi30k-cpu"),
        ("subtitle", "cache-subtitle-cpu"),
        ("synthetic_long", "synthetic-long-tiny"),
        ("synthetic_adequacy", "synthetic-adequacy-tiny"),
        ("synthetic_tense", "synthetic-tense-tiny"),
        ("synthetic_senses", "synthetic-senses-tiny"),
    ],
)
def test_the_results_quote_test_scores_of_their_table(page, file):
    text = prose((ROOT / "docs" / "results" / f"{page}.md").read_text("utf-8"))
    quoted = set(re.findall(r"(?<![\d.,+-])\d\d\.\d\d(?![\d%])", text))
    runs = read(file)
    others = (metrics.history_bleu(run, "other") for run in runs)
    recorded = [*map(metrics.test_bleu, runs), *means(runs), *filter(None, others)]
    assert quoted and quoted <= {f"{score:.2f}" for score in recorded}


def test_scores_in_bold_are_of_recorded_test_sets():
    text = (ROOT / "docs" / "recipes.md").read_text("utf-8")
    bold = set(re.findall(r"\*\*(\d+\.\d\d)\*\*", text))
    runs = [run for name in ("recipes", *TABLES) for run in read(name)]
    assert len(bold) > 10
    assert bold <= {f"{run['best']['test'][0]['value']:.2f}" for run in runs}


def test_dev_curves_are_those_of_recorded_runs():
    text = (ROOT / "docs" / "recipes.md").read_text("utf-8")
    runs = [run for name in ("recipes", *TABLES) for run in read(name)]
    curves = [
        {point["step"]: point["dev_bleu"] for point in run.get("history", ())} for run in runs
    ]
    tables = re.findall(r"^\| updates \|(.*)\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert len(tables) >= 5
    for heading, rows in tables:
        steps = [cell.strip().replace(",", "") for cell in heading.split("|")]
        for row in rows.splitlines():
            cells = row.split("|")[2:]
            points = [(int(s), c.strip()) for s, c in zip(steps, cells) if s.isdigit()]
            digits = [len(point.partition(".")[2]) for _, point in points]
            assert points and any(
                all(
                    step in curve and f"{curve[step]:.{n}f}" == point
                    for (step, point), n in zip(points, digits)
                )
                for curve in curves
            ), row


def test_counts_of_pairs_are_those_of_the_manifests():
    text = (ROOT / "data" / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+\.json)` \| ([\d,]+) / ([\d,]+) / ([\d,]+) \|", text, re.MULTILINE)
    assert len(rows) >= 5
    for name, *counts in rows:
        manifest = json.loads((ROOT / "data" / name).read_text("utf-8"))
        lines = {file["path"]: file.get("lines") for file in manifest["files"]}
        for split, count in zip(("train", "dev", "test"), counts):
            path = f"{manifest['splits'][split]['prefix']}.{manifest['source']}"
            assert lines[path] == int(count.replace(",", "")), path

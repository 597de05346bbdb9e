"""Writes benchmarks/RESULTS.md from the records in results/: `python -m benchmarks.report`."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

from benchmarks import harness
from benchmarks.cost import VOCABULARIES
from benchmarks.peers import table as peer_table
from benchmarks.speed import table
from benchmarks.tasks import solved
from benchmarks.tasks.generate import TASKS
from benchmarks.tasks.plot import variant
from benchmarks.trust import tables as trust_tables

_ROOT = Path(__file__).resolve().parent.parent


def read_benchmark(name: str) -> list[dict]:
    """Returns the records of a benchmark."""
    return harness.read(_ROOT / "results" / f"{name}.jsonl")


def _section(title: str, text: str = "") -> list[str]:
    """Returns the lines of a heading and a paragraph."""
    paragraph = textwrap.wrap(text, 100, break_on_hyphens=False)
    return [f"## {title}", "", *paragraph, *([""] if paragraph else [])]


def peers() -> list[str]:
    out = []
    for title, text, lines in peer_table.sections(read_benchmark):
        out += [*_section(title, text), *lines]
    return out


def _table_section(
    name: str, make_table: Callable[[list[dict]], list[str]], title: str, text: str
) -> list[str]:
    """Returns the lines of a section with the table of a benchmark, none without records."""
    records = read_benchmark(name)
    return [*_section(title, text), *make_table(records)] if records else []


def speed() -> list[str]:
    return _table_section(
        "speed",
        table.speed,
        "Every cell",
        "Medians over turns that alternate with the cell named in the ratio, in one process. "
        "The share compares the counted operations per second with the machine's rate of "
        "matrix products in the same turns. `operations allow` is the ratio that the operations, "
        "counted by `flops.py`, would give alone.",
    )


def scaling() -> list[str]:
    return _table_section(
        "scaling",
        table.scaling,
        "The cost of growing",
        "Seconds per update (for the corpus: per word) relative to those before, median of "
        "alternating pairs in one process.",
    )


def ablation() -> list[str]:
    records = [r for r in read_benchmark("ablation") if "variant" in r]
    if not records:
        return []
    out = _section(
        "The gain of each speed-up",
        "Training speed of a variant relative to all speed-ups on, median of alternating rounds "
        "in one process.",
    )
    out += ["| variant | ratio |", "|-|-|"]
    return out + [f"| {r['variant']} | {r['ratio']:.2f} |" for r in records] + [""]


def rewriting() -> list[str]:
    records = read_benchmark("rewriting")
    if not records:
        return []
    out = _section(
        "Rewriting the memory",
        "Training speed relative to RNNSearch's on the same batch, median of alternating pairs "
        "in one process, and the ratio that the floating-point operations allow (`flops.py` "
        "counts them). Reached: the first divided by the second. CPU: the ratio of processor "
        "time.",
    )
    out += [
        "| size | products | system | words/s | ratio | operations allow | reached | CPU |",
        "|-|-|-|-|-|-|-|-|",
    ]
    for r in records:
        cells = [r["size"], r["precision"], r["variant"], r["words_per_second"]]
        cells += [f"{r[key]:.2f}" for key in ("ratio", "operations_allow", "reached", "cpu_ratio")]
        out.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    return out + [""]


def cache() -> list[str]:
    records = read_benchmark("cache")
    if not records:
        return []
    out = _section(
        "The continuous cache",
        "Target words/s relative to RNNSearch on the same batch, median of alternating pairs in "
        "one process.",
    )
    out += ["| size | what | products | RNNSearch | with cache | ratio |", "|-|-|-|-|-|-|"]
    named = {"train": "training the gate alone", "decode": "beam 10, cache read and written"}
    for r in records:
        cells = [r["size"], named[r["what"]], r["precision"], r["base"], r["words_per_second"]]
        out.append(f"| {' | '.join(str(cell) for cell in cells)} | {r['ratio']:.2f} |")
    return out + [""]


def memory() -> list[str]:
    records = read_benchmark("memory")
    if not records:
        return []
    out = _section(
        "Memory by corpus size",
        "Encoding, then a few updates of a tiny model.",
    )
    out += ["| pairs | peak MiB |", "|-|-|"]
    return out + [f"| {r['pairs']:,} | {r['peak_rss_mib']:.0f} |" for r in records] + [""]


def learning_tasks() -> list[str]:
    records = [r for r in read_benchmark("learning-tasks") if r["benchmark"] == "learning-tasks"]
    if not records:
        return []
    out = _section(
        "Learning tasks",
        "Wrong bits per sequence, with the weights that were best on validation: the worst of "
        "the trained sizes, then larger sizes (bits of the answer in brackets). Converged: the "
        "first update with less than 0.1 on validation.",
    )
    out += [
        "![error against length](learning-tasks-length.png)",
        "",
        "| task | model | seed | parameters | updates | CPU minutes | converged | trained |",
    ]
    out[-1] += " beyond |"
    out += ["|-|-|-|-|-|-|-|-|-|"]
    order = {name: number for number, name in enumerate(TASKS)}
    for r in sorted(records, key=lambda r: (order[r["config"]["task"]], variant(r), seed_of(r))):
        task = TASKS[r["config"]["task"]]
        trained = [t["wrong_bits"] for t in r["test"] if task.trained_on(tuple(t["size"]))]
        beyond = [t for t in r["test"] if not task.trained_on(tuple(t["size"]))]
        cells = [task.name, variant(r), seed_of(r), f"{r['parameters']:,}", f"{r['steps']:,}"]
        cells += [f"{r['cpu_seconds'] / 60:.0f}", r["converged_at"] or "no", f"{max(trained):.2f}"]
        cells.append(", ".join(_beyond(t) for t in beyond))
        out.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    return out + [""]


def learning_seeds() -> list[str]:
    return _table_section(
        "learning-tasks-seeds",
        solved.table,
        "Learning tasks: seeds that solve them",
        "Shorter runs with more seeds. Solved: less than 0.1 wrong bits per sequence on "
        "validation, measured every 250 updates; first, median and last are updates, and seeds "
        "that never solve the task come last. Wrong bits are those of the weights that were best "
        "on validation.",
    )


def seed_of(record: dict) -> int:
    return record["config"]["settings"]["random_seed"]


def _beyond(tested: dict) -> str:
    size = " x ".join(map(str, tested["size"]))
    return f"{size}: {tested['wrong_bits']:.2f} ({tested['bits']})"


def cost() -> list[str]:
    records = read_benchmark("cost")
    peaks = [r for r in records if r["benchmark"] == "peak"]
    slots = [r for r in records if r["benchmark"] == "slots"]
    out = []
    if peaks:
        out += _section(
            "Memory of an update at the papers' size",
            "128 pairs of 50 words, Collier & Beel 2019; the whole process, libraries included. "
            f"The vocabularies are as large as those of Vi-En, {VOCABULARIES[0]:,} and "
            f"{VOCABULARIES[1]:,} words.",
        )
        out += ["| row | parameters | peak MiB |", "|-|-|-|"]
        out += [f"| {r['row']} | {r['parameters']:,} | {r['peak_mib']:,} |" for r in peaks]
        out.append("")
    if slots:
        out += _section(
            "The cost of a larger NTM memory",
            "An update of a small pure MANN, median of turns; the other size is 128.",
        )
        out += ["| varied | size | milliseconds | relative to the smallest |", "|-|-|-|-|"]
        for r in slots:
            cells = [r["varied"], r["size"], r["milliseconds"], f"{r['ratio_to_smallest']:.2f}"]
            out.append(f"| {' | '.join(str(cell) for cell in cells)} |")
        out.append("")
    return out


def trust() -> list[str]:
    """Returns the sections on robustness."""
    out = []
    for title, text, lines in trust_tables.sections(read_benchmark("trust")):
        out += _section(title, text) + [*lines, ""]
    return out


def verdicts() -> list[str]:
    """Returns the section on how often verdicts on simulated tables are false, and true."""
    records = read_benchmark("verdicts")
    out = []
    settings = ("expect", "seeds", "claims", "sentences", "luck")
    for kind, title, columns in (
        ("false", "Claims that are just false, and just not contrary to the truth: at most 5%",
         (*settings, "margin", "holds", "does not hold", "one_seed")),
        ("extended", "The same, judged with the first seeds and again with all",
         ("expect", "first", *settings[1:], "margin", "holds", "does not hold")),
        ("records", "The same, judged from whole records: at most 5%, but for chance",
         ("evidence", *settings[:-1], "documents", "luck", "margin", "holds", "does not hold")),
        ("speeds", "Claims about speed: at most 5%, but for chance",
         ("claim", "truth", "share", "timing_error", "turns", "noise", "claims", "holds",
          "does not hold")),
        ("true", "True claims: the more proofs, the better",
         (*settings, "true", "margin", "holds", "one_seed")),
    ):  # fmt: skip
        of_kind = [r for r in records if r["claim_is"] == kind]
        if not of_kind:
            continue
        out += [f"### {title}", "", f"{of_kind[0]['tables']:,} papers per line.", ""]
        heads = {"first": "first seeds", "luck": "seed deviation", "true": "true difference",
                 "one_seed": "one seed alone",
                 "truth": "is", "share": "true share of speed", "timing_error": "timing error",
                 "noise": "turn deviation"}  # fmt: skip
        out += [f"| {' | '.join(heads.get(name, name) for name in columns)} |"]
        out += ["|-" * len(columns) + "|"]
        for r in of_kind:
            forms = dict.fromkeys(("holds", "does not hold", "one_seed"), ".1%")
            forms |= dict.fromkeys(("true", "margin"), ".2f")
            forms |= dict.fromkeys(("share", "timing_error"), ".0%")
            right = {"true": "holds", "false": "does not hold"}.get(r.get("truth", ""))
            cells = ["-" if name == right else format(r[name], forms.get(name, ""))
                     for name in columns]  # fmt: skip
            out.append(f"| {' | '.join(cells)} |")
        out.append("")
    if not out:
        return []
    head = _section(
        "Verdicts on simulated tables",
        "Simulated papers (`verdicts.py`): the share in which at least one claim is judged to "
        "hold, or not to hold. The seed deviation is a standard deviation of log odds: 0.03 is "
        "about half a BLEU, 0.2 three. `one seed alone`: the share in which a bootstrap over "
        "sentences finds the first seed of the first system better, a conclusion that the "
        "verdicts never draw. From whole records, everything that judges a table is tried: "
        "statistics of addresses, tests whose documents are resampled, and older records whose "
        "error is an upper bound from p values and intervals. Claims about speed are judged from "
        "simulated timings: the turn deviation is that of the logarithm of a turn's share, the "
        "timing error is the greatest of a whole measurement, and `-` is a verdict that is right.",
    )
    return head + out


def render() -> str:
    head = ["# Measured speed and memory", "", "Written by `python -m benchmarks.report` from"]
    head += ["`results/`; README.md in this folder describes the measurements.", ""]
    parts = [peers(), speed(), scaling(), ablation(), rewriting(), cache(), memory()]
    parts += [cost(), learning_tasks(), learning_seeds(), trust(), verdicts()]
    return "\n".join(sum(parts, head)).rstrip() + "\n"


if __name__ == "__main__":
    (_ROOT / "benchmarks" / "RESULTS.md").write_text(render(), encoding="utf-8")

"""Writes benchmarks/RESULTS.md from the JSON lines of results/: `python -m benchmarks.report`."""

from __future__ import annotations

from pathlib import Path

from benchmarks import lines
from benchmarks.peers import turns
from benchmarks.speed import table
from benchmarks.tasks.generate import TASKS
from benchmarks.tasks.plot import variant

_ROOT = Path(__file__).resolve().parent.parent
UNITS = {
    "train": "target words/s",
    "decode": "sentences/s, beam 10",
    "to-bleu": "minutes to a development BLEU of 25",
}

_KILLS = {
    "points": "runs",
    "identical": "the same end",
    "killed": "kill -9",
    "terminated": "SIGTERM",
    "while_at_files": "at a call to the file system",
    "saved_and_exited_143": "saved and exited 143",
}


def lines_of(name: str) -> list[dict]:
    return lines.read(_ROOT / "results" / f"{name}.jsonl")


def peers() -> list[str]:
    out = ["## Beside the peers", ""]
    for what, unit in UNITS.items():
        records = lines_of(f"peers-{what}")
        runs = [r for r in records if "pair" in r]
        if not runs:
            continue
        told = turns.summary(what, runs)
        out += [f"### {unit}", "", f"Medians on {runs[0]['cpu']}, {runs[0]['threads']} threads; "]
        out[-1] += "products in float32 where nothing else is said."
        out += ["", "| system | turns | median | BLEU | words a sentence |", "|-|-|-|-|-|"]
        for line in (line for line in told if "system" in line):
            own = [r for r in runs if r["system"] == line["system"]]
            bleu, length = own[0].get("bleu"), own[0].get("words_per_sentence")
            cells = [f"{v:.1f}" if isinstance(v, (int, float)) else "-" for v in (bleu, length)]
            shown = _figure(line["median"], 0 if (line["median"] or 0) >= 30 else 1)
            out.append(f"| {line['system']} | {len(own)} | {shown} | {cells[0]} | {cells[1]} |")
        out += ["", *(_ratio(line) for line in told if "ratio" in line), ""]
    return out if len(out) > 2 else []


def _ratio(line: dict) -> str:
    pairs = line["pairs"]
    every = ", ".join(_figure(value, 2) for value in pairs)
    one_by_one = f" ({every})" if len(pairs) <= 5 else ""
    return f"- {line['ratio']}: {_figure(line['median'], 2)}, turns: {len(pairs)}{one_by_one}"


def _figure(value: float | None, digits: int) -> str:
    return "never" if value is None else f"{value:.{digits}f}"


def speed() -> list[str]:
    records = lines_of("speed")
    if not records:
        return []
    out = ["## Every cell", "", "Medians of alternating turns with the cell that the ratio is of,"]
    out += ["in one process. The share is of the rate of products that was measured in the same"]
    out += ["turns; operations are counted by `flops.py`, and `operations allow` is the ratio that"]
    out += ["they alone would give.", ""]
    return out + table.speed(records)


def scaling() -> list[str]:
    records = lines_of("scaling")
    if not records:
        return []
    out = ["## What growing costs", "", "Seconds an update (the corpus: a word) over those before,"]
    return [*out, "median of alternating pairs in one process.", "", *table.scaling(records)]


def ablation() -> list[str]:
    records = [r for r in lines_of("ablation") if "variant" in r]
    if not records:
        return []
    out = ["## What gave how much", "", "Training speed of a variant over that of all on,"]
    out += ["median of alternating rounds in one process.", "", "| variant | ratio |", "|-|-|"]
    return out + [f"| {r['variant']} | {r['ratio']:.2f} |" for r in records] + [""]


def rewriting() -> list[str]:
    records = lines_of("rewriting")
    if not records:
        return []
    out = ["## Rewriting the memory", "", "Training speed over RNNSearch's on the same batch,"]
    out += ["median of alternating pairs in one process, beside the ratio that the floating-point"]
    out += ["operations allow (`flops.py` counts them). Reached: the one over the other. CPU: the"]
    out += ["ratio of processor time.", ""]
    out += ["| size | products | system | words/s | ratio | operations allow | reached | CPU |"]
    out += ["|-|-|-|-|-|-|-|-|"]
    for r in records:
        cells = [r["size"], r["precision"], r["variant"], r["words_per_second"]]
        cells += [f"{r[key]:.2f}" for key in ("ratio", "operations_allow", "reached", "cpu_ratio")]
        out.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    return out + [""]


def cache() -> list[str]:
    records = lines_of("cache")
    if not records:
        return []
    out = ["## The continuous cache", "", "Target words/s over those of RNNSearch on the same"]
    out += ["batch, median of alternating pairs in one process.", ""]
    out += ["| size | what | products | RNNSearch | with cache | ratio |", "|-|-|-|-|-|-|"]
    named = {"train": "training the gate alone", "decode": "beam 10, cache read and written"}
    for r in records:
        cells = [r["size"], named[r["what"]], r["precision"], r["base"], r["words_per_second"]]
        out.append(f"| {' | '.join(str(cell) for cell in cells)} | {r['ratio']:.2f} |")
    return out + [""]


def memory() -> list[str]:
    records = lines_of("memory")
    if not records:
        return []
    out = ["## Memory against corpus size", "", "Encoding and a few updates of a tiny model."]
    out += ["", "| pairs | peak MiB |", "|-|-|"]
    return out + [f"| {r['pairs']:,} | {r['peak_rss_mib']:.0f} |" for r in records] + [""]


def learning_tasks() -> list[str]:
    records = [r for r in lines_of("learning-tasks") if r["benchmark"] == "learning-tasks"]
    if not records:
        return []
    out = ["## Learning tasks", "", "Wrong bits a sequence, of the weights that did best on"]
    out += ["validation: the worst of the trained sizes, then beyond them (bits of the answer in"]
    out += ["brackets). Converged: the first update with less than 0.1 on validation.", ""]
    out += ["![error against length](learning-tasks-length.png)", ""]
    out += ["| task | model | seed | parameters | updates | CPU minutes | converged | trained |"]
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


def seed_of(record: dict) -> int:
    return record["config"]["settings"]["random_seed"]


def _beyond(tested: dict) -> str:
    size = " x ".join(map(str, tested["size"]))
    return f"{size}: {tested['wrong_bits']:.2f} ({tested['bits']})"


def cost() -> list[str]:
    records = lines_of("cost")
    peaks = [r for r in records if r["benchmark"] == "peak"]
    slots = [r for r in records if r["benchmark"] == "slots"]
    out = []
    if peaks:
        out += ["## Memory of an update at the papers' size", "", "128 pairs of 50 words, Collier"]
        out += ["& Beel 2019; the process with all it loads.", ""]
        out += ["| row | parameters | peak MiB |", "|-|-|-|"]
        out += [f"| {r['row']} | {r['parameters']:,} | {r['peak_mib']:,} |" for r in peaks]
        out.append("")
    if slots:
        out += ["## What a larger NTM memory costs", "", "An update of a small pure MANN, median"]
        out += ["of turns; 128 is the size of what is not varied.", ""]
        out += ["| varied | size | milliseconds | over the smallest |", "|-|-|-|-|"]
        for r in slots:
            cells = [r["varied"], r["size"], r["milliseconds"], f"{r['ratio_to_smallest']:.2f}"]
            out.append(f"| {' | '.join(str(cell) for cell in cells)} |")
        out.append("")
    return out


def trust() -> list[str]:
    """What was killed, and what bad input was drawn."""
    kills = [r for r in lines_of("trust") if r["benchmark"] == "trust kills"]
    inputs = [r for r in lines_of("trust") if r["benchmark"] == "trust/inputs"]
    out = []
    if kills:
        total = {key: sum(r[key] for r in kills) for key in _KILLS}
        out += ["## Runs that were killed", "", "A short run, killed or stopped once or twice at"]
        out += ["random moments and given the same command again, beside one that was not: are all"]
        out += ["weights, scores and translations the same, bit for bit?", ""]
        out += [f"| {' | '.join(_KILLS.values())} |", f"|{'-|' * len(_KILLS)}"]
        out += [f"| {' | '.join(f'{total[key]:,}' for key in _KILLS)} |", ""]
    if inputs:
        out += ["## Bad input", "", "Drawn at random, each kind by the same seed: taken whole, or"]
        out += ["refused whole with one message. A traceback, a wrong number of lines, a file out"]
        out += ["of place or too much memory is a failure.", ""]
        out += ["| kind | taken | refused | failed |", "|-|-|-|-|"]
        rows = [(r["kind"], r["taken"], r["refused"], r["failed"]) for r in inputs]
        rows.append(("all", *(sum(row[i] for row in rows) for i in (1, 2, 3))))
        out += [f"| {kind} | {a:,} | {b:,} | {c:,} |" for kind, a, b, c in rows] + [""]
    return out + settings() + decoding()


def settings() -> list[str]:
    """How command lines with drawn settings ended."""
    records = [r for r in lines_of("trust") if r["benchmark"] == "trust/settings"]
    if not records:
        return []
    names = ("draws", "trained", "refused")
    total = {name: sum(r[name] for r in records) for name in names}
    bad = sum(len(r["not_well"]) for r in records)
    out = ["## Settings of every kind", "", "Drawn from their ranges, the edges and beyond: a run"]
    out += ["trains, or is refused in one line. A traceback, a crash or an endless run is"]
    out += ["not well.", "", "| drawn | trained | refused | not well |", "|-|-|-|-|"]
    numbers = (*total.values(), bad)
    return [*out, "| " + " | ".join(f"{number:,}" for number in numbers) + " |", ""]


def decoding() -> list[str]:
    """What decoding promises, on models with random weights."""
    records = [r for r in lines_of("trust") if r["benchmark"] == "trust/decode"]
    if not records:
        return []
    out = ["## What decoding promises", "", "Models with random weights: a line alone and among"]
    out += ["others, lines in another order, beam width 1 and greedy search, scores and alignments"]
    out += ["of a search and of forced decoding. Weights are sensitive if moving them by a"]
    out += ["millionth moves a score by more than a tenth of what is allowed. Nothing is compared"]
    out += ["then.", ""]
    out += ["| cell | draws | sensitive | did not hold |", "|-|-|-|-|"]
    for cell in dict.fromkeys(r["cell"] for r in records):
        of_cell = [r for r in records if r["cell"] == cell]
        draws, sensitive = (sum(r[key] for r in of_cell) for key in ("draws", "sensitive"))
        wrong = len({(r["first"], w["draw"]) for r in of_cell for w in r["wrong"]})
        out.append(f"| {cell} | {draws:,} | {sensitive:,} | {wrong:,} |")
    return [*out, ""]


def verdicts() -> list[str]:
    """How often verdicts on simulated tables are false, and how often they find the truth."""
    records = lines_of("verdicts")
    out = []
    for kind, title, shown in (
        ("false", "claims that are just false, and just not contrary to the truth: at most 5%",
         ("margin", "holds", "does not hold", "one_seed")),
        ("true", "true claims: the more, the better", ("true", "margin", "holds", "one_seed")),
    ):  # fmt: skip
        found = [r for r in records if r["claim_is"] == kind]
        if not found:
            continue
        out += [f"### Of {title}", "", f"{found[0]['tables']:,} papers a line.", ""]
        names = ["expect", "seeds", "claims", "sentences", "luck", *shown]
        heads = {"luck": "seeds' luck", "true": "true difference", "one_seed": "one seed alone"}
        out += [f"| {' | '.join(heads.get(name, name) for name in names)} |"]
        out += ["|-" * len(names) + "|"]
        for r in found:
            forms = dict.fromkeys(shown, ".1%") | {"true": ".2f", "margin": ".2f"}
            cells = [format(r[name], forms.get(name, "")) for name in names]
            out.append(f"| {' | '.join(cells)} |")
        out.append("")
    if not out:
        return []
    head = ["## Verdicts on simulated tables", "", "Papers with known truth (`verdicts.py`): in"]
    head += ["how many is at least one claim said to hold, or not to hold? Seeds' luck is the"]
    head += ["standard deviation of log odds: 0.03 is about half a BLEU, 0.2 three. `one seed"]
    head += ["alone`: the bootstrap over sentences calls the first seed of the first system"]
    head += ["better, which the verdicts never do.", ""]
    return head + out


def render() -> str:
    head = ["# Measured speed and memory", "", "Written by `python -m benchmarks.report` from"]
    head += ["`results/`; see README.md beside this file for how it was taken.", ""]
    parts = [peers(), speed(), scaling(), ablation(), rewriting(), cache(), memory()]
    parts += [cost(), learning_tasks(), trust(), verdicts()]
    return "\n".join(sum(parts, head)).rstrip() + "\n"


if __name__ == "__main__":
    (_ROOT / "benchmarks" / "RESULTS.md").write_text(render(), encoding="utf-8")

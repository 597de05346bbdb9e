"""Writes benchmarks/RESULTS.md from the JSON lines of results/: `python -m benchmarks.report`."""

from __future__ import annotations

from pathlib import Path

from benchmarks import lines
from benchmarks.speed import table

_ROOT = Path(__file__).resolve().parent.parent
UNITS = {
    "train": "target words/s",
    "decode": "sentences/s, beam 10",
    "to-bleu": "minutes to a development BLEU of 25",
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
        systems = list(dict.fromkeys(r["system"] for r in runs))
        pairs = len({r["pair"] for r in runs})
        out += [f"### {unit}", "", f"Medians of {pairs} turns on {runs[0]['cpu']}, "]
        out[-1] += f"{runs[0]['threads']} threads; products in float32 where nothing else is said."
        out += ["", "| system | median | BLEU | words a sentence |", "|-|-|-|-|"]
        for system in systems:
            own = [r for r in runs if r["system"] == system]
            median = sorted(r["value"] for r in own)[len(own) // 2]
            bleu, length = own[0].get("bleu"), own[0].get("words_per_sentence")
            shown = f"{median:.0f}" if median >= 30 else f"{median:.1f}"
            cells = [f"{v:.1f}" if isinstance(v, (int, float)) else "-" for v in (bleu, length)]
            out.append(f"| {system} | {shown} | {cells[0]} | {cells[1]} |")
        out += ["", *(f"- {r['ratio']}: {r['median']:.2f}" for r in records if "ratio" in r), ""]
    return out if len(out) > 2 else []


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
    out += ["operations allow (`flops.py` counts them). Reached: the one over the other.", ""]
    out += ["| size | products | system | target words/s | ratio | operations allow | reached |"]
    out += ["|-|-|-|-|-|-|-|"]
    for r in records:
        cells = [r["size"], r["precision"], r["variant"], r["words_per_second"]]
        cells += [f"{r[key]:.2f}" for key in ("ratio", "operations_allow", "reached")]
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


def render() -> str:
    head = ["# Measured speed and memory", "", "Written by `python -m benchmarks.report` from"]
    head += ["`results/`; see README.md beside this file for how it was taken.", ""]
    parts = [peers(), speed(), scaling(), ablation(), rewriting(), cache(), memory()]
    return "\n".join(sum(parts, head)).rstrip() + "\n"


if __name__ == "__main__":
    (_ROOT / "benchmarks" / "RESULTS.md").write_text(render(), encoding="utf-8")

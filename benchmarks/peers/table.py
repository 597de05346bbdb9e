"""The sections of RESULTS.md on the peers."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Callable

from benchmarks.peers import memories, systems, turns

# By the name of a file of records: its kind of measurement, and a heading.
TOOLKITS = {
    "peers-train": ("train", "target words/s"),
    "peers-onmt-train": ("train", "target words/s, measured again with OpenNMT-tf"),
    "peers-decode": ("decode", "sentences/s, beam 10"),
    "peers-to-bleu": ("to-bleu", "minutes to a development BLEU of 25"),
}
MARIAN = {
    f"peers-marian-{kind}-{threads}": (kind, f"{heading}, {threads} thread{'s'[: threads - 1]}")
    for kind, heading in (
        ("train", "Training, target words/s"),
        ("beam", "Beam 10, words/s"),
        ("greedy", "Greedy search, words/s"),
    )
    for threads in (1, 2)
}
MEMORIES = {
    f"peers-memory-{size}-{threads}": (
        f"copy-{size}",
        f"Updates/s, size {size}, {threads} thread{'s'[: threads - 1]}",
    )
    for size in ("tasks", "large")
    for threads in (1, 2)
}
MARIAN_TEXT = (
    "The same text and vocabularies; `marian` is its RNNSearch (`--type s2s`), to which ours "
    "(`rnnsearch`) is nearest. In decoding these two have the same weights. The machine was busy "
    "with other programs, which change the clock more than processor time: the ratio by processor "
    "seconds is the one to read."
)
MEMORIES_TEXT = (
    "The copy task at equal sizes: `dnc` is the package of that name for PyTorch, `ours` our DNC "
    "as TensorFlow executes it, `ours_xla` compiled, as `benchmarks.tasks` trains it. The machine "
    "was as busy."
)


def sections(read: Callable[[str], list[dict]]) -> list[tuple[str, str, list[str]]]:
    """Returns title, text and lines of each section that has records.

    Args:
      read: returns the records of a file of results/, by its name.
    """
    found = [
        ("Compared with JoeyNMT and OpenNMT-tf", "", _tables(TOOLKITS, read, systems.OURS)),
        ("Compared with Marian", MARIAN_TEXT, _tables(MARIAN, read, systems.OURS)),
        ("Memories compared with PyTorch", MEMORIES_TEXT, _tables(MEMORIES, read, memories.OURS)),
    ]
    return [section for section in found if section[2]]


def _tables(
    files: dict[str, tuple[str, str]], read: Callable[[str], list[dict]], ours: Iterable[str]
) -> list[str]:
    lines: list[str] = []
    for name, (kind, heading) in files.items():
        runs = [record for record in read(name) if "pair" in record]
        if runs:
            lines += [f"### {heading}", "", *_table(runs, turns.summary(kind, runs, tuple(ours)))]
    return lines


def _table(runs: list[dict], summary: list[dict]) -> list[str]:
    lines = [f"Medians on {runs[0]['cpu']}, {runs[0]['threads']} threads; "]
    if runs[0]["threads"] == 1:
        lines[0] = lines[0].replace("threads", "thread")
    lines[0] += "products in float32 unless named otherwise."
    head = ["system", "turns", "median"]
    by_cpu = turns.by_processor_second(runs)
    if by_cpu:
        head.append("a processor second")
    # An update of a memory writes no words.
    qualities = [] if "size" in runs[0] else ["bleu", "words_per_sentence"]
    head += [{"bleu": "BLEU", "words_per_sentence": "words per sentence"}[q] for q in qualities]
    lines += ["", f"| {' | '.join(head)} |", "|-" * len(head) + "|"]
    for line in (line for line in summary if "system" in line):
        of_system = [run for run in runs if run["system"] == line["system"]]
        row = [line["system"], str(len(of_system)), _rate(line["median"])]
        if by_cpu:
            rates = [rate for (system, _), rate in by_cpu.items() if system == line["system"]]
            row.append(_rate(statistics.median(rates)) if rates else "-")
        values = (of_system[0].get(key) for key in qualities)
        row += [f"{v:.1f}" if isinstance(v, (int, float)) else "-" for v in values]
        lines.append(f"| {' | '.join(row)} |")
    return [*lines, "", *(_ratio(line) for line in summary if "ratio" in line), ""]


def _ratio(line: dict) -> str:
    text = f"- {line['ratio']}: {_number(line['median'], 2)}, turns: {len(line['pairs'])}"
    text += _turns(line["pairs"])
    if "cpu_pairs" in line:
        text += f"; by processor seconds {line['cpu_median']:.2f}{_turns(line['cpu_pairs'])}"
    return text


def _turns(values: list[float | None]) -> str:
    return f" ({', '.join(_number(value, 2) for value in values)})" if len(values) <= 10 else ""


def _rate(value: float | None) -> str:
    return _number(value, 0 if (value or 0) >= 30 else 1)


def _number(value: float | None, digits: int) -> str:
    return "never" if value is None else f"{value:.{digits}f}"

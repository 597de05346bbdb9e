"""The totals of `results/trust.jsonl`, as sections of RESULTS.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

Record = dict[str, Any]
Section = tuple[str, str, list[str]]  # a title, a paragraph, the lines of a table

_KILLS = {
    "points": "runs",
    "identical": "identical results",
    "killed": "kill -9",
    "terminated": "SIGTERM",
    "while_at_files": "during a call to the file system",
    "saved_and_exited_143": "saved or cleaned up, and exited 143",
}


def sections(records: Sequence[Record]) -> Iterator[Section]:
    """Yields a section for each kind that has records."""
    for name, make in _SECTIONS.items():
        of_kind = [record for record in records if record["benchmark"] == name]
        if of_kind:
            yield make(of_kind)


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    """Returns the lines of a table; numbers with commas."""
    names = list(head)
    lines = [f"| {' | '.join(names)} |", f"|{'-|' * len(names)}"]
    for row in rows:
        cells = (f"{cell:,}" if isinstance(cell, (int, float)) else cell for cell in row)
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _kills(records: list[Record]) -> Section:
    rows: list[list[Any]] = []
    for name in dict.fromkeys(r.get("command", "train") for r in records):
        of_command = [r for r in records if r.get("command", "train") == name]
        rows.append([name, *(sum(r[key] for r in of_command) for key in _KILLS)])
    if len(rows) > 1:
        rows.append(["all", *(sum(row[i] for row in rows) for i in range(1, len(_KILLS) + 1))])
    return (
        "Killed commands",
        "A command is killed or stopped once or twice at random moments and run again. Are all "
        "weights, scores, translations and other files the same as those of an undisturbed one, "
        "bit for bit, and is nothing else left? `train`: a short training; `jobs`: two that "
        "translate a file together; `serve`: a server, which must answer as before; `cluster`: "
        "one of two workers that train together.",
        table(["command", *_KILLS.values()], rows),
    )


def _inputs(records: list[Record]) -> Section:
    rows = [(r["kind"], r["taken"], r["refused"], r["failed"]) for r in records]
    rows.append(("all", *(sum(row[i] for row in rows) for i in (1, 2, 3))))
    return (
        "Bad input",
        "Random inputs of each kind must be accepted as a whole, or refused as a whole with "
        "one message. A traceback, a wrong number of lines, a file outside the folder or "
        "too much memory is a failure.",
        table(["kind", "accepted", "refused", "failed"], rows),
    )


def _settings(records: list[Record]) -> Section:
    total = [sum(r.get(name, 0) for r in records) for name in ("draws", "trained", "refused")]
    bad = sum(len(r["not_well"]) for r in records)
    return (
        "Random settings",
        "Values are drawn from their ranges, at the limits and beyond. A run must train, or be "
        "refused in one line. A traceback, a crash or an endless run is a failure.",
        table(["drawn", "trained", "refused", "failed"], [[*total, bad]]),
    )


def _decoding(records: list[Record]) -> Section:
    rows = []
    for cell in dict.fromkeys(r["cell"] for r in records):
        of_cell = [r for r in records if r["cell"] == cell]
        draws, sensitive = (sum(r[key] for r in of_cell) for key in ("draws", "sensitive"))
        wrong = len({(r["first"], w["draw"]) for r in of_cell for w in r["wrong"]})
        rows.append((cell, draws, sensitive, wrong))
    return (
        "Guarantees of decoding",
        "For models with random weights, these must be equal: a line translated alone and among "
        "others, lines in another order, beam width 1 and greedy search, an exported model and "
        "the one it was exported from, scores and alignments of a search and of forced decoding. "
        "Weights are sensitive if a change by a millionth moves a score by more than a tenth of "
        "the tolerance; these are not compared.",
        table(["cell", "draws", "sensitive", "failed"], rows),
    )


def _lines(records: list[Record]) -> Section:
    keys = ("lines", "answered", "unlike", "wrong_blanks", "peak_mib_at_a_tenth",
            "peak_mib_at_half", "peak_mib")  # fmt: skip
    head = ["lines in", "lines out", "unlike for equal lines", "wrong for blank ones"]
    return (
        "Lines of every kind",
        "Blank and long lines, unknown words, emoji, separators, control and combining "
        "characters, and random Unicode stream through `tfmann translate`.",
        table(
            [*head, "peak MiB after a tenth", "after half", "at the end"],
            [[r.get(key, "-") for key in keys] for r in records],
        ),
    )


def _soaks(records: list[Record]) -> Section:
    rows = [
        (r["what"], r["minutes"], r.get("updates", r.get("requests")), r["limit_mib"],
         r["mib_at_half"], r["mib_at_end"], r["slope_mib_per_hour"])
        for r in records if r["what"] != "exhaust"
    ]  # fmt: skip
    head = ["command", "minutes", "updates or requests", "limit of address space, MiB"]
    lines = table([*head, "MiB at half", "MiB at the end", "MiB an hour"], rows)
    for record in (r for r in records if r["what"] == "exhaust"):
        ends = ", ".join(f"{end}: {count}" for end, count in sorted(record["ends"].items()))
        lines += ["", f"Trained with too little memory, {record['runs']} runs: {ends}; "
                  f"{len(record['bad'])} not as they should."]  # fmt: skip
    return (
        "A long time under a memory limit",
        "Resident memory of a tiny model's training and server; the slope is of the second half.",
        lines,
    )


_SECTIONS: dict[str, Callable[[list[Record]], Section]] = {
    "trust kills": _kills,
    "trust/inputs": _inputs,
    "trust/settings": _settings,
    "trust/decode": _decoding,
    "trust/lines": _lines,
    "trust/soak": _soaks,
}

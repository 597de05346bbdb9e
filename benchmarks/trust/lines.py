"""A long stream of lines of every kind: as many translations, alike for equal lines.

    python -m benchmarks.trust lines --count=300000 --out=results/trust.jsonl

Writes lines into `tfmann translate --input=-` with a tiny model of random weights and reads its
output meanwhile. Half of the lines are new, the others are drawn from a pool. Checked are the
number of lines, that a blank line is answered with a blank one, that no other line is lost among
them, and that a line of the pool has the same translation each time. The peak of resident memory
is recorded after a tenth and a half of the lines and at the end. In the first tenth, seconds,
TensorFlow still allocates; more than a twentieth of growth in the second half fails, if there are
lines enough to tell.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from benchmarks import harness

ROOT = Path(__file__).resolve().parent.parent.parent
_SETTINGS: dict[str, Any] = {
    "infer_batch_size": 256,
    "infer_mode": "greedy",
    "tgt_max_len_infer": 6,
}
_POOL = 500  # lines that come again
_GROWTH = 1.05  # of the peak, from half of the lines to all
_ENOUGH = 100_000  # lines; with fewer, TensorFlow still allocates in the second half
_WORDS = ("der", "hund", "und", "die", "größe", "một", "猫", "كلب", "unbekannt")


def _words(draw: random.Random, most: int) -> str:
    return " ".join(draw.choices(_WORDS, k=draw.randint(1, most)))


def _mixed(characters: str) -> Callable[[random.Random], str]:
    """Draws words with some of the characters between or inside them."""

    def draw_line(draw: random.Random) -> str:
        parts = [word + draw.choice(characters) * draw.randint(0, 2)
                 for word in draw.choices(_WORDS, k=draw.randint(1, 8))]  # fmt: skip
        return draw.choice(("", " ")).join(parts)

    return draw_line


KINDS: dict[str, Callable[[random.Random], str]] = {
    "words": lambda draw: _words(draw, 14),
    "blank": lambda draw: draw.choice(("", "", " ", "\t", "   \t ", "\r")),
    "unknown": _mixed("0123456789"),
    "specials": lambda draw: " ".join(
        draw.choices(("<s>", "</s>", "<unk>", "@@", "|||", "<pad>", *_WORDS), k=draw.randint(1, 8))
    ),
    "emoji": _mixed("😀👩‍👩‍👧🇩🇪🏳️‍🌈"),
    "separators": _mixed("\u2028\u2029\x85\x0b\x0c\x1c\u00a0\u3000\ufeff"),
    "tabs": _mixed("\t\r"),
    "controls": _mixed("\0\x01\x1b\x7f\u200f\u202e"),
    "combining": _mixed("\u0301\u0308\u0323\u20e3\u0e49"),
    "any": lambda draw: "".join(
        chr(code) for code in (draw.randrange(0x110000) for _ in range(draw.randint(1, 30)))
        if code != 10 and not 0xD800 <= code < 0xE000
    ),
    "long": lambda draw: _words(draw, 150),
    "long word": lambda draw: draw.choice(_WORDS) * draw.randint(100, 2000),
}  # fmt: skip
_WEIGHTS = [20, 8, 8, 8, 8, 8, 8, 8, 8, 14, 1, 1]


def stream_lines(count: int, seed: int) -> Iterator[tuple[str, int | None, str]]:
    """Yields the kind of a line, its number in the pool or None, and its text."""
    draw = random.Random(seed)
    pool = [_draw_line(draw) for _ in range(_POOL)]
    for _ in range(count):
        if draw.random() < 0.5:
            number = draw.randrange(_POOL)
            kind, text = pool[number]
            yield kind, number, text
        else:
            kind, text = _draw_line(draw)
            yield kind, None, text


def _draw_line(draw: random.Random) -> tuple[str, str]:
    (kind,) = draw.choices(list(KINDS), _WEIGHTS)
    return kind, KINDS[kind](draw)


class Checks:
    """The checks of the answers, in order."""

    def __init__(self) -> None:
        self.answered = self.wrong_blanks = self.unlike = 0
        self.kinds: collections.Counter[str] = collections.Counter()
        self._of_pool: dict[int, bytes] = {}

    def add(self, kind: str, number: int | None, text: str, answer: bytes) -> None:
        """Checks an answer without its end."""
        self.answered += 1
        self.kinds[kind] += 1
        if not text.strip(" \t\r") and answer:
            self.wrong_blanks += 1
        if number is not None:
            self.unlike += self._of_pool.setdefault(number, answer) != answer


def run(count: int, seed: int) -> dict[str, Any]:
    """Streams `count` lines; returns a record."""
    from benchmarks.trust import random_model
    from tfmann.utils.provenance import provenance

    with tempfile.TemporaryDirectory(prefix="tfmann-trust-") as folder:
        random_model.write(Path(folder), **_SETTINGS)
        begun = time.perf_counter()
        argv = [sys.executable, "-m", "tfmann", "translate", f"--model={folder}", "--input=-"]
        process = subprocess.Popen(
            argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )  # fmt: skip
        assert process.stdin and process.stdout and process.stderr
        writer = threading.Thread(target=_write, args=(process.stdin, count, seed))
        writer.start()
        checks, peaks = Checks(), {"tenth": 0.0, "half": 0.0, "end": 0.0}
        near_end = count - 2 * _SETTINGS["infer_batch_size"]
        moments = {near_end: "end", count // 2: "half", count // 10: "tenth"}
        for (kind, number, text), answer in zip(stream_lines(count, seed), process.stdout):
            checks.add(kind, number, text, answer.removesuffix(b"\n"))
            moment = moments.get(checks.answered)
            if moment:
                peaks[moment] = peak_mib(process.pid)
        more = sum(1 for _ in process.stdout)
        messages = process.stderr.read().decode(errors="replace")
        writer.join()
        status = process.wait()
        process.stdout.close()
        process.stderr.close()
    grew = count >= _ENOUGH and peaks["end"] > _GROWTH * peaks["half"]
    lost = checks.answered + more != count or checks.wrong_blanks or checks.unlike
    bad = bool(status or lost or grew or "Traceback" in messages)
    return {
        "benchmark": "trust/lines", "seed": seed, "lines": count,
        "answered": checks.answered + more, "wrong_blanks": checks.wrong_blanks,
        "unlike": checks.unlike, "status": status, "messages": messages[-300:],
        "peak_mib_at_a_tenth": peaks["tenth"], "peak_mib_at_half": peaks["half"],
        "peak_mib": peaks["end"], "failed": bad,
        "kinds": dict(checks.kinds), "settings": _SETTINGS,
        "seconds": round(time.perf_counter() - begun, 1), **provenance(),
    }  # fmt: skip


def _write(stream: IO[bytes], count: int, seed: int) -> None:
    with contextlib.suppress(BrokenPipeError), stream:
        for _, _, text in stream_lines(count, seed):
            stream.write(text.encode() + b"\n")


def peak_mib(pid: int) -> float:
    """Returns the peak of resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text("utf-8").splitlines():
        if line.startswith("VmHWM"):
            return round(int(line.split()[1]) / 1024, 1)
    return 0.0


def main(argv: list[str]) -> int:
    """Streams the lines; returns 1 if something did not hold."""
    parser = argparse.ArgumentParser(prog="benchmarks.trust lines", description=__doc__)
    parser.add_argument("--count", type=int, default=300_000, help="lines")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other lines")
    parser.add_argument("--out", type=Path, help="file to append the line to")
    args = parser.parse_args(argv)
    record = run(args.count, args.seed)
    harness.write([record], args.out)
    return 1 if record["failed"] else 0

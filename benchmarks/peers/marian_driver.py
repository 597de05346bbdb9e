"""Trains or decodes with an unchanged Marian 1.12.42 (pymarian) and prints JSON lines of timings.

Runs in the environment that setup.sh makes for it; compare.py calls it. Training is a process of
its own, because pymarian's `main` keeps Python's lock; its log has a line for every update.
"""

from __future__ import annotations

import meter  # isort: skip (its import starts the clock)

import os
import re
import signal
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Generator, Iterator
from importlib.metadata import version
from pathlib import Path

import driver

# The model of ours.json with the cell `rnnsearch`, as Marian names it.
MODEL = {
    "type": "s2s",
    "enc-type": "bidirectional",
    "enc-cell": "gru",
    "dec-cell": "gru",
    "dec-cell-base-depth": 2,
    "dim-rnn": 256,
    "dim-emb": 256,
    "precision": "float32 float32",
}
TRAINING = {
    "max-length": 80,
    "optimizer": "adam",
    "optimizer-params": "0.9 0.999 1e-8",
    "learn-rate": 0.001,
    "clip-norm": 1,
    "cost-type": "ce-mean-words",
    "dropout-rnn": 0.3,
    "seed": 1,
    "disp-freq": 1,
    "save-freq": "1000000u",
    "log-level": "info",
}
BATCH = 64  # sentences of an update
DECODING = {
    "normalize": 1,
    "mini-batch": 32,
    "maxi-batch": 100,
    "maxi-batch-sort": "src",
    "max-length-factor": 3,
    "allow-unk": None,  # as ours
    "workspace": 512,
    "quiet": None,
    "quiet-translation": None,
}
_UPDATE = re.compile(r"Up\. ([\d,]+) : .*Cost (\S+).* Time ([\d.]+)s : ([\d.,]+) words/s")
_TICKS = os.sysconf("SC_CLK_TCK")


def arguments(options: dict[str, object]) -> list[str]:
    """Returns options as words of a command line; None is a flag without a value."""
    words = []
    for name, value in options.items():
        words += [f"--{name}", *(() if value is None else str(value).split())]
    return words


def train_options(flags: Namespace) -> dict[str, object]:
    """Returns the options of a training of `warmup` + `steps` updates.

    With several threads each takes its own part of an update's sentences (`--sync-sgd`), which is
    how Marian uses processors.
    """
    sides = [driver.suffixed(flags.train, language) for language in (flags.src, flags.tgt)]
    options = {
        **MODEL,
        **TRAINING,
        "train-sets": " ".join(sides),
        "vocabs": vocabularies(flags),
        "model": flags.model_dir / "model.npz",
        "overwrite": None,
        "after": "0e" if flags.resident else f"{flags.warmup + flags.steps}u",  # 0: no end
        "mini-batch": BATCH,
        "cpu-threads": flags.threads,
    }
    if flags.threads > 1:
        options["sync-sgd"] = None
    if flags.random_batches:
        options["maxi-batch-sort"] = "none"
    return options


def vocabularies(flags: Namespace) -> str:
    """Returns the two files of words."""
    return " ".join(driver.suffixed(flags.vocab, side) for side in (flags.src, flags.tgt))


def read_update(line: str) -> tuple[int, float, int] | None:
    """Returns the number of an update, its loss and its target words with `</s>`.

    None means that a line of Marian's log is not that of an update. The log has seconds and words/s
    with two decimals, so that a batch of 900 words is right within a few words.
    """
    found = _UPDATE.search(line)
    if not found:
        return None
    number, loss, seconds, rate = (float(group.replace(",", "")) for group in found.groups())
    return int(number), loss, round(seconds * rate)


def follow(log: Iterator[str], clock: meter.UpdateMeter, updates: int) -> float:
    """Reports that many updates of a log to the meter; returns the last loss.

    Raises:
      SystemExit: the log ends before.
    """
    words = 0
    for line in log:
        sys.stderr.write(line)
        update = read_update(line)
        if update:
            words += update[2]
            clock.update_done(words)
            updates -= 1
            if not updates:
                return update[1]
    raise SystemExit(
        f"marian_driver.py: Marian ended, {updates} updates too early; its log says why"
    )


class Process:
    """Marian's training, as a process."""

    def __init__(self, options: dict[str, object]):
        """Starts it; its log is `log`."""
        program = "import sys, _pymarian; sys.exit(_pymarian.main(sys.argv[1:]))"
        command = [sys.executable, "-c", program, "train", *arguments(options)]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.log: Iterator[str] = iter(self._process.stderr or ())
        self.peak_mib = 0
        self._cpu_seconds = 0.0

    def cpu_seconds(self) -> float:
        """Returns the processor seconds of all threads so far, and notes the peak memory."""
        folder = f"/proc/{self._process.pid}"
        try:
            self.peak_mib = driver.peak_mib(self._process.pid)
            with open(f"{folder}/stat", encoding="utf-8") as stat:
                # The name, which may hold spaces, ends with the last bracket.
                fields = stat.read().rpartition(")")[2].split()
            self._cpu_seconds = (int(fields[11]) + int(fields[12])) / _TICKS
        except (OSError, StopIteration):
            pass  # it has ended since its last line
        return self._cpu_seconds

    def signal(self, number: int) -> None:
        """Stops it for a while, lets it continue, or ends it."""
        self._process.send_signal(number)

    def end(self) -> None:
        """Waits for its end.

        Raises:
          SystemExit: it failed.
        """
        if self._process.wait():
            raise SystemExit(f"marian_driver.py: status {self._process.returncode}")


def train(flags: Namespace) -> Generator[dict, None, None]:
    """Trains as `marian`, with a clock on the lines of its log; a model remains of one turn alone.

    Between two turns the process is stopped. The update in which that happens is not counted.
    """
    flags.model_dir.mkdir(parents=True, exist_ok=True)
    process = Process(train_options(flags))
    warmup = flags.warmup
    try:
        while True:
            clock = meter.UpdateMeter(warmup, process.cpu_seconds)
            loss = follow(process.log, clock, warmup + flags.steps)
            if not flags.resident:
                process.end()
            process.signal(signal.SIGSTOP)
            yield {**clock.result(), "loss": loss, "peak_mib": process.peak_mib}
            process.signal(signal.SIGCONT)
            warmup = meter.WARMUP_OF_TURN
    finally:
        process.signal(signal.SIGKILL)


def decode_options(flags: Namespace) -> dict[str, object]:
    """Returns the options of a translator; greedy search needs no probabilities."""
    options = {
        **DECODING,
        "models": flags.model_dir / "model.npz",
        "vocabs": vocabularies(flags),
        "beam-size": flags.beam_width,
        "cpu-threads": flags.threads,
    }
    if flags.beam_width == 1:
        options["skip-cost"] = None
    if flags.gemm_type:
        options.update({"gemm-type": flags.gemm_type, "optimize": None})
    if flags.shortlist:
        options["shortlist"] = f"{flags.shortlist} 100 100 0"
    return options


def decode(flags: Namespace) -> Generator[dict, None, None]:
    """Translates the warm-up text, and then the text with a clock, from lines to lines."""
    from _pymarian import Translator

    texts = [
        Path(driver.suffixed(prefix, flags.src)).read_text("utf-8").split("\n")[:-1]
        for prefix in (flags.warmup_input, flags.input)
    ]
    translator = Translator(" ".join(arguments(decode_options(flags))))
    translator.translate(texts[0])
    while True:
        begin, begin_cpu = time.perf_counter(), time.process_time()
        translations = translator.translate(texts[1])
        seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - begin_cpu
        flags.output.write_text("".join(f"{line}\n" for line in translations), "utf-8")
        yield {"sentences": len(translations), "seconds": seconds, "cpu_seconds": cpu_seconds}


def main() -> None:
    """Runs the command line; the JSON line is the last of standard output."""
    flags = driver.parse()
    os.environ["OMP_NUM_THREADS"] = "1"  # of each of Marian's own threads
    if flags.command == "to_bleu":
        raise SystemExit("marian_driver.py: to_bleu is for JoeyNMT alone")
    records = {"train": train, "decode": decode}[flags.command](flags)
    versions = {"pymarian": version("pymarian")}
    meter.take_turns(records, lambda record: driver.report(record, versions), flags.resident)


if __name__ == "__main__":
    main()

"""The command line and the environment of each system, so that all are measured in the same way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PEERS = Path(__file__).resolve().parent
ROOT = PEERS.parents[1]
# Marian's variants, for decoding: products in int8, and the words of a lexical shortlist alone.
_INT8, _SHORTLIST = "--gemm_type=packed8", "--shortlist={model_dir}/shortlist.txt"
MARIAN = {
    "marian": [],
    "marian_int8": [_INT8],
    "marian_shortlist": [_SHORTLIST],
    "marian_int8_shortlist": [_INT8, _SHORTLIST],
}
PEER_SYSTEMS = ("joey", "onmt", *MARIAN)
# Marian's model: attention as wide as an annotation.
RNNSEARCH: dict[str, object] = {"cell": "rnnsearch", "attention_size": 512}
# Ours: the type of matrix products, in training and in decoding, and what differs from ours.json.
OURS: dict[str, tuple[str, dict[str, object]]] = {
    "ours": ("float32", {}),
    "ours_bfloat16": ("mixed_bfloat16", {}),
    "rnnsearch": ("float32", RNNSEARCH),
    "rnnsearch_bfloat16": ("mixed_bfloat16", RNNSEARCH),
}
SYSTEMS = (*PEER_SYSTEMS, *OURS)
DEFAULT_SYSTEMS = ("joey", "onmt", "ours", "ours_bfloat16")
# The first 64 development sentences are translated before the clock starts.
WARMUP_SENTENCES = 64


@dataclass(frozen=True)
class Setup:
    """The paths of the corpus and of everything made from it."""

    corpus_dir: Path
    src: str
    tgt: str
    work_dir: Path
    ours_hparams: Path
    ours_out_dir: Path | None
    threads: int = 2

    @property
    def input(self) -> Path:
        """The text to translate, without its suffix; compare.py writes it."""
        return self.work_dir / "input"

    @property
    def warmup_input(self) -> Path:
        """The text translated before the clock starts, without its suffix."""
        return self.work_dir / "warmup_input"

    def output(self, system: str) -> Path:
        """Returns the path of a system's last hypotheses."""
        return self.work_dir / f"{system}.hyp"

    def model_dir(self, system: str) -> Path:
        """Returns the folder of a peer's checkpoint, for decoding."""
        return self.work_dir / toolkit(system)


def toolkit(system: str) -> str:
    """Returns the peer's toolkit: the name of its environment and driver."""
    return system.partition("_")[0]


def train_command(setup: Setup, system: str, model_dir: Path, warmup: int, steps: int) -> list[str]:
    """Returns the command that trains a new model for `warmup` + `steps` updates."""
    counts = [f"--warmup={warmup}", f"--steps={steps}"]
    if system in OURS:
        return [*_ours("train", system), *_our_corpus(setup), *counts]
    return [*_peer(setup, system, "train", model_dir), *_corpus(setup), *counts]


def to_bleu_command(
    setup: Setup, system: str, model_dir: Path, goal: list[str], seed: int
) -> list[str]:
    """Returns the command that trains a new model until an evaluation reaches the flags' `goal`.

    JoeyNMT draws its initial weights before it sets a seed, so that no two of its runs are equal.
    """
    if system in OURS:
        command = [*_ours("to_bleu", system, random_seed=seed), *_our_corpus(setup)]
        command.append(f"--out_dir={model_dir}")
    else:
        command = [*_peer(setup, system, "to_bleu", model_dir), *_corpus(setup)]
    return [*command, *goal]


def checkpoint_command(
    setup: Setup, system: str, model_dir: Path, warmup: int, steps: int
) -> list[str]:
    """Returns the command that trains a peer's model for decoding.

    Its batches are random, as JoeyNMT's are: after 900 updates on length buckets, the model of
    OpenNMT-tf wrote 10.7 words per sentence; after 900 on random batches 12.1, as JoeyNMT's did.
    """
    return [*train_command(setup, system, model_dir, warmup, steps), "--random_batches"]


def decode_command(setup: Setup, system: str, beam_width: int = 10) -> list[str]:
    """Returns the command that translates the input in batches of 32; beam width 1 is greedy.

    The length penalty is GNMT's, Marian's a division by the length. The model of `rnnsearch` is the
    one that Marian got its weights from (marian_weights.py).
    """
    if system in OURS:
        out_dir = setup.model_dir("marian") / "ours" if OURS[system][1] else setup.ours_out_dir
        search: dict[str, object] = {"infer_mode": "greedy"}
        if beam_width > 1:
            search = {"infer_mode": "beam_search", "beam_width": beam_width}
        return [
            *_ours("decode", system, **search),
            f"--out_dir={out_dir}",
            f"--inference_input_file={setup.input}.{setup.src}",
            f"--inference_output_file={setup.output(system)}",
        ]
    model_dir = setup.model_dir(system)
    return [
        *_peer(setup, system, "decode", model_dir),
        f"--warmup_input={setup.warmup_input}",
        f"--input={setup.input}",
        f"--output={setup.output(system)}",
        f"--beam_width={beam_width}",
        *(flag.format(model_dir=model_dir) for flag in MARIAN.get(system, [])),
    ]


class Process:
    """A system's process with that many threads, whose output has a JSON line for every turn."""

    def __init__(self, command: list[str], threads: int, log: Path):
        """Starts it; all output but the JSON lines goes to `log`."""
        if not Path(command[0]).exists():
            raise SystemExit(
                f"compare: there is no {command[0]}; run benchmarks/peers/setup.sh first"
            )
        log.parent.mkdir(parents=True, exist_ok=True)
        self._command, self._log, self._ended = command, log, False
        with open(log, "w", encoding="utf-8") as stderr:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **_environment(threads)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )

    def record(self) -> dict:
        """Waits for the next JSON line, which must begin with a bracket, and returns its record."""
        assert self._process.stdout
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise self._failed()

    def next_turn(self) -> dict:
        """Lets a resident process measure once more."""
        assert self._process.stdin
        try:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        except OSError:
            raise self._failed() from None
        return self.record()

    def end(self) -> None:
        """Closes its input, which ends a resident process, and waits."""
        if not self._ended:
            self._process.communicate()
            self._ended = True
            if self._process.returncode:
                raise self._failed()

    def _failed(self) -> SystemExit:
        if not self._ended:
            self._process.communicate()
        self._ended = True
        status = self._process.returncode
        tail = "\n".join(self._log.read_text("utf-8").splitlines()[-15:])
        message = f"compare: this failed (status {status}): {' '.join(self._command)}"
        return SystemExit(f"{message}\n{tail}\n(all of it is in {self._log})")


def run(command: list[str], threads: int, log: Path) -> dict:
    """Runs a command that prints one JSON line; adds the wall time of the whole process.

    A failure ends the program with the log's name and last lines.
    """
    begin = time.perf_counter()
    process = Process(command, threads, log)
    record = process.record()
    process.end()
    return {**record, "wall_seconds": time.perf_counter() - begin}


def keep_processors(threads: int) -> None:
    """Confines this process and its children to `threads` processors.

    TensorFlow sizes some of its thread pools by the processors it sees, despite its settings.
    """
    if hasattr(os, "sched_setaffinity"):  # Linux
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def _environment(threads: int) -> dict[str, str]:
    pools = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
    return {
        **{pool: str(threads) for pool in pools},
        # Threads that wait by spinning take time from those that work.
        "OMP_WAIT_POLICY": "PASSIVE",
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }


def _ours(command: str, system: str, **settings: object) -> list[str]:
    python = [sys.executable, "-m", "benchmarks.peers.ours_driver"]
    precision, model = OURS[system]
    if command == "decode":
        settings = {"infer_precision": precision, **settings}
    else:
        settings = {"precision": precision, **model, **settings}
    return [*python, command, f"--settings={json.dumps(settings)}"]


def _our_corpus(setup: Setup) -> list[str]:
    return [
        f"--hparams_path={setup.ours_hparams}",
        f"--corpus_dir={setup.corpus_dir}",
        f"--vocab_prefix={setup.work_dir}/vocab/ours",
    ]


def _corpus(setup: Setup) -> list[str]:
    return [f"--train={setup.corpus_dir}/train", f"--dev={setup.corpus_dir}/val"]


def environments() -> Path:
    """Returns the folder of the peers' environments."""
    return Path(os.environ.get("PEERS_DIR", PEERS / ".envs")).resolve()


def _peer(setup: Setup, system: str, command: str, model_dir: Path) -> list[str]:
    return [
        str(environments() / toolkit(system) / "bin/python"),
        str(PEERS / f"{toolkit(system)}_driver.py"),
        command,
        f"--model_dir={model_dir}",
        f"--src={setup.src}",
        f"--tgt={setup.tgt}",
        f"--vocab={setup.work_dir}/vocab/{toolkit(system)}",
        f"--threads={setup.threads}",
    ]

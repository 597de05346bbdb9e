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
PEER_SYSTEMS = ("joey", "onmt")
# Ours, by the type of matrix products, in training and in decoding.
OURS = {"ours": "float32", "ours_bfloat16": "mixed_bfloat16"}
SYSTEMS = (*PEER_SYSTEMS, *OURS)
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
        return self.work_dir / system


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


def decode_command(setup: Setup, system: str) -> list[str]:
    """Returns the command that translates the input: beam 10, GNMT's penalty, batches of 32."""
    if system in OURS:
        return [
            *_ours("decode", system),
            f"--out_dir={setup.ours_out_dir}",
            f"--inference_input_file={setup.input}.{setup.src}",
            f"--inference_output_file={setup.output(system)}",
        ]
    return [
        *_peer(setup, system, "decode", setup.model_dir(system)),
        f"--warmup_input={setup.warmup_input}",
        f"--input={setup.input}",
        f"--output={setup.output(system)}",
    ]


def run(command: list[str], threads: int, log: Path) -> dict:
    """Runs a command with that many threads and processors; its last line of output is JSON.

    Returns that line's record with the wall time of the whole process added. All other output goes
    to `log`; a failure ends the program with the log's name and last lines.
    """
    if not Path(command[0]).exists():
        raise SystemExit(f"compare: there is no {command[0]}; run benchmarks/peers/setup.sh first")
    log.parent.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    with open(log, "w", encoding="utf-8") as stderr:
        process = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **_environment(threads)},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    wall = time.perf_counter() - begin
    try:
        if process.returncode:
            raise ValueError
        record = json.loads(process.stdout.rstrip().splitlines()[-1])
    except (ValueError, IndexError):
        tail = "\n".join(log.read_text("utf-8").splitlines()[-15:])
        message = f"compare: this failed (status {process.returncode}): {' '.join(command)}"
        raise SystemExit(f"{message}\n{tail}\n(all of it is in {log})") from None
    return {**record, "wall_seconds": wall}


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


def _ours(command: str, system: str, **settings: int) -> list[str]:
    python = [sys.executable, "-m", "benchmarks.peers.ours_driver"]
    setting = "infer_precision" if command == "decode" else "precision"
    return [*python, command, f"--settings={json.dumps({setting: OURS[system], **settings})}"]


def _our_corpus(setup: Setup) -> list[str]:
    return [
        f"--hparams_path={setup.ours_hparams}",
        f"--corpus_dir={setup.corpus_dir}",
        f"--vocab_prefix={setup.work_dir}/vocab/ours",
    ]


def _corpus(setup: Setup) -> list[str]:
    return [f"--train={setup.corpus_dir}/train", f"--dev={setup.corpus_dir}/val"]


def _peer(setup: Setup, system: str, command: str, model_dir: Path) -> list[str]:
    environments = Path(os.environ.get("PEERS_DIR", PEERS / ".envs")).resolve()
    return [
        str(environments / system / "bin/python"),
        str(PEERS / f"{system}_driver.py"),
        command,
        f"--model_dir={model_dir}",
        f"--src={setup.src}",
        f"--tgt={setup.tgt}",
        f"--vocab={setup.work_dir}/vocab/{system}",
    ]

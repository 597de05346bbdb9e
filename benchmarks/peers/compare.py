"""Measures this package beside JoeyNMT and OpenNMT-tf: the same model, corpus and threads.

    python -m benchmarks.peers.compare --corpus_dir=DIR --what=train|decode|checkpoint

Runs the systems in turn (A, B, C, A, B, C, ...), each time in a process of its own, and prints a
JSON line for each run, then the medians of the ratios ours / peer. Ours runs twice a turn, with
products in float32 and in bfloat16. See README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
from collections.abc import Iterable
from pathlib import Path

from benchmarks.peers import corpus, systems
from tfmann.provenance import provenance

RATES = {
    "train": ("words", "target words/s"),
    "checkpoint": ("words", "target words/s"),
    "decode": ("sentences", "sentences/s"),
}


def parser_of(description: str, chosen: Iterable[str]) -> argparse.ArgumentParser:
    """The flags that to_bleu.py has too; `chosen` run if the command line says nothing else."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--corpus_dir", type=Path, required=True, help="has train, val and test files")
    add("--systems", default=",".join(chosen), help="in the order of running")
    add("--pairs", type=int, default=5, help="how often all systems are run")
    add("--threads", type=int, default=2)
    add("--src", default="de", help="suffix of the source files")
    add("--tgt", default="en", help="suffix of the target files")
    add("--work_dir", type=Path, default=systems.PEERS / ".work", help="vocabularies, models")
    add("--ours_hparams", type=Path, default=systems.PEERS / "ours.json")
    return parser


def parse() -> argparse.Namespace:
    """The command line."""
    parser = parser_of(__doc__.split("\n")[0], systems.SYSTEMS)
    add = parser.add_argument
    add("--what", choices=RATES, required=True, help="checkpoint: trains the peers for decode")
    add("--warmup", type=int, default=20, help="updates before the clock starts")
    add("--steps", type=int, default=120, help="updates that are measured")
    add("--test", default="test_2016_flickr", help="the test files, without suffix")
    add("--sentences", type=int, help="decode only so many test sentences; all if not given")
    add("--ours_out_dir", type=Path, help="our trained model, for decode")
    flags = parser.parse_args()
    flags.systems = chosen(parser, flags, systems.SYSTEMS)
    ours = set(flags.systems) & set(systems.OURS)
    if flags.what == "decode" and ours and not flags.ours_out_dir:
        parser.error("--what=decode needs --ours_out_dir=DIR, or --systems=joey,onmt")
    if flags.what == "checkpoint":
        # Ours are trained with its own command line.
        flags.systems = [system for system in flags.systems if system not in ours]
        flags.pairs = 1
    return flags


def chosen(
    parser: argparse.ArgumentParser, flags: argparse.Namespace, known: tuple[str, ...]
) -> list[str]:
    """The systems that are to run."""
    names = flags.systems.split(",")
    if not set(names) <= set(known):
        parser.error(f"--systems: there are {', '.join(known)}")
    return names


def places(flags: argparse.Namespace, ours_out_dir: Path | None = None) -> systems.Setup:
    """Where everything lies; the vocabularies are written."""
    setup = systems.Setup(
        corpus_dir=flags.corpus_dir.resolve(),
        src=flags.src,
        tgt=flags.tgt,
        work_dir=flags.work_dir.resolve(),
        ours_hparams=flags.ours_hparams.resolve(),
        ours_out_dir=ours_out_dir and ours_out_dir.resolve(),
    )
    for language in (flags.src, flags.tgt):
        corpus.write_vocabularies(setup.corpus_dir / "train", language, setup.work_dir / "vocab")
    return setup


def prepare(flags: argparse.Namespace) -> systems.Setup:
    """Writes the vocabularies and the texts to translate."""
    setup = places(flags, flags.ours_out_dir)
    test = corpus.read_lines(setup.corpus_dir / flags.test, flags.src)[: flags.sentences]
    corpus.write_lines(Path(f"{setup.input}.{flags.src}"), test)
    warmup = corpus.read_lines(setup.corpus_dir / "val", flags.src)[: systems.WARMUP_SENTENCES]
    corpus.write_lines(Path(f"{setup.warmup_input}.{flags.src}"), warmup)
    return setup


def measure(flags: argparse.Namespace, setup: systems.Setup, system: str) -> dict:
    """Runs one system once; with hypotheses to look at, their quality is part of the record."""
    log = setup.work_dir / "logs" / f"{flags.what}-{system}.log"
    load = os.getloadavg()[0]
    if flags.what == "decode":
        record = systems.run(systems.decode_command(setup, system), flags.threads, log)
        record.update(quality(flags, setup, system))
    else:
        model_dir = setup.work_dir / f"{system}.training"
        kind = systems.checkpoint_command if flags.what == "checkpoint" else systems.train_command
        command = kind(setup, system, model_dir, flags.warmup, flags.steps)
        record = systems.run(command, flags.threads, log)
        if flags.what == "checkpoint":
            # Only a training that has ended leaves a model where decoding looks for it.
            shutil.rmtree(setup.model_dir(system), ignore_errors=True)
            model_dir.rename(setup.model_dir(system))
        else:
            shutil.rmtree(model_dir, ignore_errors=True)
    counted, unit = RATES[flags.what]
    value = record[counted] / record["seconds"]
    head = {"system": system, "what": flags.what, "value": value, "unit": unit}
    return {**head, **record, "threads": flags.threads, "load_before": load, **hardware()}


def quality(flags: argparse.Namespace, setup: systems.Setup, system: str) -> dict:
    """BLEU on the words as they are, lower-cased, and the length, of a system's hypotheses."""
    from sacrebleu.metrics import BLEU

    hypotheses = setup.output(system).read_text("utf-8").split("\n")[:-1]
    references = corpus.read_lines(setup.corpus_dir / flags.test, flags.tgt)[: flags.sentences]
    if len(hypotheses) != len(references):
        counts = f"{len(hypotheses)} lines for {len(references)} sentences"
        raise SystemExit(f"compare: {system} wrote {counts} to {setup.output(system)}")
    bleu = BLEU(tokenize="none", lowercase=True, force=True)
    score = bleu.corpus_score(hypotheses, [references])
    return {
        "bleu": round(score.score, 2),
        "signature": str(bleu.get_signature()),
        "words_per_sentence": round(score.sys_len / len(hypotheses), 2),
    }


def hardware() -> dict:
    """The processor's name, how many this process may use, and the machine's memory."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line for line in cpuinfo.read_text().splitlines() if "model name" in line]
        name = models[0].split(":")[1].strip() if models else name
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": name, "cores": os.cpu_count(), "memory_gib": round(memory / 2**30, 1)}


def summary(what: str, values: dict[str, list[float]]) -> list[dict]:
    """The median of each system, and of the ratios of each of ours to each peer, pair by pair."""
    medians = [
        {"what": what, "system": system, "median": statistics.median(runs), "runs": runs}
        for system, runs in values.items()
    ]
    ratios = []
    for own in (system for system in values if system in systems.OURS):
        for peer in (system for system in values if system in systems.PEER_SYSTEMS):
            pairs = [ours / theirs for ours, theirs in zip(values[own], values[peer])]
            ratio = {"what": what, "ratio": f"{own}/{peer}", "median": statistics.median(pairs)}
            ratios.append({**ratio, "pairs": pairs})
    return medians + ratios


def main() -> None:
    """Runs everything in turn and prints as it goes."""
    flags = parse()
    setup = prepare(flags)
    systems.keep_processors(flags.threads)
    values: dict[str, list[float]] = {system: [] for system in flags.systems}
    for pair in range(flags.pairs):
        for system in flags.systems:
            record = measure(flags, setup, system)
            values[system].append(record["value"])
            print(json.dumps({"pair": pair, **record}), flush=True)
    for line in summary(flags.what, values):
        print(json.dumps({**line, **provenance()}), flush=True)


if __name__ == "__main__":
    main()

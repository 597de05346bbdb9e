"""Uses an installed tfmann as someone does who has nothing but the wheel: `scripts/package.sh`.

Runs in an empty folder: a short demo, the page of `tfmann play`, and the way from raw text, made up
here, to a trained model and the answers of its server. Prints what each part took. It imports
nothing of tfmann itself, so that the commands find only what is installed.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

# The demo as it is, with fewer updates, which reach no goal.
_SHORT_DEMO = """
import sys
from tfmann import synthetic
from tfmann.cli import demo
write, demo._STEPS, demo.GOAL = synthetic.write_corpus, 4, 0.0
synthetic.write_corpus = lambda folder, **sizes: write(folder, train=200, dev=5, test=5, seed=1)
sys.exit(demo.main(["--out_dir=demo"]))
"""
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


def main() -> None:
    """Walks the whole way."""
    for walk in (read_help, run_the_demo, play, prepare_raw_text, train_and_translate, serve):
        start = time.monotonic()
        walk()
        print(f"{walk.__name__}: {time.monotonic() - start:.0f} s", flush=True)


def run(*command: str) -> str:
    """Runs a command; returns its standard output. Ends with its messages where it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(condition: bool, message: str) -> None:
    """Ends with the message if the condition is false."""
    if not condition:
        sys.exit(f"walk_package.py: {message}")


@contextlib.contextmanager
def running(*command: str) -> Iterator[Callable[..., Any]]:
    """Runs a server until the block ends; yields a function that asks it."""
    with open("server.log", "w+") as log, subprocess.Popen(command, stderr=log) as program:
        try:
            address = None
            while program.poll() is None and address is None:
                address = _ADDRESS.search(Path("server.log").read_text())
                time.sleep(0.1)
            check(address is not None, f"no address: {Path('server.log').read_text()}")

            def ask(path: str, value: Any = None) -> Any:
                body = None if value is None else json.dumps(value).encode()
                headers = {"Content-Type": "application/json"}
                request = urllib.request.Request(address[0] + path, body, headers)
                with urllib.request.urlopen(request, timeout=60) as answer:
                    text = answer.read().decode()
                    kind = answer.headers["content-type"]
                return json.loads(text) if kind.startswith("application/json") else text

            yield ask
        finally:
            program.send_signal(signal.SIGTERM)
        check(program.wait(60) == 0, f"{command[1]} ended with {program.returncode}")


def read_help() -> None:
    """The commands, and the files that come with the package."""
    check("\n  train " in run("tfmann", "-h"), "`tfmann -h` does not list train")
    check("tiny/luong.json" in run("tfmann", "settings"), "no settings files")
    run("tfmann", "--version")


def run_the_demo() -> None:
    """`tfmann demo`, with the figure that it draws."""
    shown = run(sys.executable, "-c", _SHORT_DEMO)
    check("translation" in shown, f"the demo shows no translation:\n{shown}")
    check(Path("demo/attention.png").read_bytes().startswith(b"\x89PNG"), "the demo draws nothing")


def play() -> None:
    """The page, its files, and every model that comes with it."""
    with running("tfmann", "play", "--port=0") as ask:
        check("tfmann play" in ask("/"), "the page is not there")
        for name in ("play.css", "play.js", "state.js", "stage.js", "draw.js", "panels.js"):
            check(len(ask(f"/{name}")) > 1000, f"{name} is empty")
        models = ask("/play/models")["models"]
        check({"luong", "ntm", "dnc", "cache"} < {model["name"] for model in models}, str(models))
        # Not an example, whose trace is packed: this needs the weights.
        for name in ("luong", "dnc"):
            trace = ask("/play/trace", {"model": name, "lines": ["anko Darkel skripa ."]})
            check(bool(trace["tokens"]), f"{name} translates nothing")


def prepare_raw_text() -> None:
    """Raw parallel text of a few words, cleaned and segmented."""
    words = {"hund": "dog", "kater": "cat", "vogel": "bird", "fisch": "fish", "esel": "donkey"}
    verbs = {"sieht": "sees", "hört": "hears", "sucht": "seeks"}
    draw = random.Random(1)
    Path("raw").mkdir()
    for name, size in (("train", 300), ("dev", 8), ("test", 8)):
        source, target = [], []
        for _ in range(size):
            (a, b), verb, count = (
                draw.sample(sorted(words), 2),
                draw.choice([*verbs]),
                draw.randint(2, 99),
            )
            source.append(f"Der {a.title()} {verb} den {b.title()}, {count} Mal.")
            target.append(f"The {words[a]} {verbs[verb]} the {words[b]}, {count} times.")
        Path(f"raw/{name}.de").write_text("".join(f"{line}\n" for line in source))
        Path(f"raw/{name}.en").write_text("".join(f"{line}\n" for line in target))
    prefixes = [f"--{name}_prefix=raw/{name}" for name in ("train", "dev", "test")]
    run("tfmann", "prepare", "--src=de", "--tgt=en", *prefixes, "--vocab_size=64", "--output=data")
    check(Path("data/data.json").exists(), "prepare wrote no data.json")


def train_and_translate() -> None:
    """A few updates on the prepared text, and translations of raw text."""
    size = ["--num_units=16", "--num_train_steps=4", "--steps_per_stats=2"]
    cheap = ["--steps_per_external_eval=4", "--infer_mode=greedy", "--tgt_max_len_infer=10"]
    figures = ["--num_attention_images=0", "--noavg_ckpts"]
    given = ["--data=data", "--hparams_path=tiny/luong.json", "--out_dir=run"]
    run("tfmann", "train", *given, *size, *cheap, *figures)
    run("tfmann", "translate", "--model=run", "--input=raw/test.de", "--output=out")
    check(len(Path("out").read_text().splitlines()) == 8, "not one translation per line")


def serve() -> None:
    """The trained model answers as `tfmann translate` did."""
    lines = Path("raw/test.de").read_text().splitlines()
    with running("tfmann", "serve", "--model=run", "--port=0") as ask:
        check(bool(ask("/health")), "no health")
        answer = ask("/translate", {"lines": lines})
    check(len(answer["lines"]) == len(lines), f"not one answer per line: {answer}")


if __name__ == "__main__":
    main()

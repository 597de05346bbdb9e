"""docs/tutorial.md: every command of it, executed in its order on a tiny corpus."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers import tiny_runs

from tfmann.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
# What the page has for a real corpus, and what is enough here.
SMALLER = {
    "head -n 1000": "head -n 12",
    "1001,2000p": "13,24p",
    "tail -n +2001": "tail -n +25",
    "--vocab_size=8000": "--vocab_size=70",
    "--num_train_steps=6000": "--num_train_steps=2 --num_units=8 --batch_size=16 --beam_width=2"
    " --steps_per_stats=1 --steps_per_external_eval=2 --tgt_max_len_infer=8"
    " --num_attention_images=0 --noavg_ckpts",
}
# Writes its arguments to a file, each ended by a null byte, and an empty one after the last.
TFMANN = '#!/bin/sh\nprintf "%s\\0" "$@" "" >>calls\n'


def blocks():
    text = PAGE.read_text(encoding="utf-8")
    for large, small in SMALLER.items():
        assert text.count(large) >= 1, f"the page no longer has {large!r}"
        text = text.replace(large, small)
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run_shell(script, folder):
    """Runs a script; the calls of `tfmann` in it are made here, where TensorFlow is loaded."""
    environment = {**os.environ, "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], check=True, env=environment)
    calls = folder / "calls"
    if calls.exists():
        for call in calls.read_text(encoding="utf-8").split("\0\0")[:-1]:
            assert main.main(call.split("\0")) == 0, call
        calls.unlink()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tutorial")
    data = tiny_runs.corpus(folder / "corpus", 90)
    for ours, theirs in (("src", "de"), ("tgt", "en")):
        shutil.copy(data / f"train.{ours}", folder / f"raw.{theirs}")
    for side in ("de", "en"):  # a pair that has an empty side, and one that is there already
        lines = (folder / f"raw.{side}").read_text("utf-8").splitlines()
        lines += ["" if side == "en" else "x", lines[0]]
        (folder / f"raw.{side}").write_text("\n".join(lines) + "\n", "utf-8")
    (folder / "bin").mkdir()
    (folder / "bin" / "tfmann").write_text(TFMANN)
    (folder / "bin" / "tfmann").chmod(0o755)
    return folder


@pytest.mark.thorough
@pytest.mark.bfloat16
def test_the_commands_of_the_tutorial_lead_from_raw_text_to_a_translation(
    folder, monkeypatch, capsys
):
    monkeypatch.chdir(folder)
    assert [language for language, _ in blocks()] == ["bash"] * 6
    for _, script in blocks():
        run_shell(script, folder)

    sides = {
        side: (folder / f"work/train.{side}").read_text().splitlines() for side in ("de", "en")
    }
    pairs = list(zip(sides["de"], sides["en"]))
    raw = list(zip(*((folder / f"raw.{s}").read_text().splitlines() for s in ("de", "en"))))
    assert len(sides["de"]) == len(sides["en"]) == len(set(pairs)) == len(set(raw)) - 1 - 24
    assert set(pairs) < set(raw)
    assert len((folder / "work/test.translation").read_text().splitlines()) == 12
    printed = capsys.readouterr().out
    assert "BLEU" in printed
    assert list((folder / "runs/tutorial").rglob("*.html"))

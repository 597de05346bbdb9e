"""`make bench-peers`: commands of the systems, resumed turns, ratios, the clock."""

import argparse
import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not installed

from benchmarks import harness  # noqa: E402
from benchmarks.peers import meter, ours_driver, systems, turns  # noqa: E402

SETUP = systems.Setup(Path("/c"), "de", "en", Path("/w"), Path("/h.json"), Path("/model"))


@pytest.mark.parametrize("system", systems.OURS)
def test_our_driver_takes_the_commands_that_it_is_called_by(system):
    goal = ["--goal=25", "--every=200", "--most=6000"]
    commands = {
        "train": systems.train_command(SETUP, system, Path("/m"), 20, 120),
        "decode": systems.decode_command(SETUP, system),
        "to_bleu": systems.to_bleu_command(SETUP, system, Path("/m"), goal, seed=3),
    }
    for name, command in commands.items():
        assert command[1:3] == ["-m", "benchmarks.peers.ours_driver"]
        args = ours_driver.parse(command[3:])
        assert args.run.__name__ == name
        precision, model = systems.OURS[system]
        expected = {"precision": precision, **model}
        if name == "decode":
            expected = {"infer_precision": precision, "infer_mode": "beam_search", "beam_width": 10}
        seed = {"random_seed": 3} if name == "to_bleu" else {}
        assert json.loads(args.settings) == {**expected, **seed}


def test_the_peers_driver_takes_them_too(monkeypatch):
    monkeypatch.syspath_prepend(str(systems.PEERS))
    import driver

    goal = ["--goal=25", "--every=200", "--most=6000"]
    for command in (
        systems.train_command(SETUP, "joey", Path("/m"), 20, 120),
        systems.checkpoint_command(SETUP, "onmt", Path("/m"), 20, 120),
        systems.decode_command(SETUP, "onmt"),
        systems.to_bleu_command(SETUP, "joey", Path("/m"), goal, seed=3),
    ):
        monkeypatch.setattr(sys, "argv", command[1:])
        assert driver.parse().command == command[2]


class Turns:
    """Runs of systems with given rates, which may be interrupted."""

    def __init__(self, rates, broken_at=-1):
        self.rates, self.broken_at, self.ran, self.turns = rates, broken_at, [], []

    def __call__(self, system, turn):
        if len(self.ran) == self.broken_at:
            raise KeyboardInterrupt
        self.ran.append(system)
        self.turns.append(turn)
        return {"system": system, "what": "train", "value": self.rates[system].pop(0)}


def flags(out, pairs, names="joey,ours,ours_bfloat16", threads=2):
    return argparse.Namespace(systems=names.split(","), pairs=pairs, threads=threads, out=out)


def ratios(out):
    return {r["ratio"]: r for r in harness.read(out) if "ratio" in r}


def test_ratios_are_of_each_of_ours_to_each_peer_within_the_turns(tmp_path):
    out = tmp_path / "lines"
    runs = Turns(
        {"joey": [2.0, 4.0, 5.0], "ours": [4.0, 4.0, 5.0], "ours_bfloat16": [8.0, 8.0, 5.0]}
    )
    turns.take(flags(out, 3), "train", runs)
    assert runs.ran == ["joey", "ours", "ours_bfloat16"] * 3
    assert set(ratios(out)) == {"ours/joey", "ours_bfloat16/joey"}
    assert ratios(out)["ours_bfloat16/joey"]["pairs"] == [4.0, 2.0, 1.0]
    assert ratios(out)["ours_bfloat16/joey"]["median"] == 2.0
    assert {"date", "revision", "threads", "cpu", "load_before"} <= harness.read(out)[0].keys()


def test_interrupted_turns_resume_and_a_broken_one_is_no_pair(tmp_path):
    out = tmp_path / "lines"
    first = Turns({"joey": [2.0, 7.0], "ours": [4.0, 8.0], "ours_bfloat16": [8.0]}, broken_at=5)
    with pytest.raises(KeyboardInterrupt):
        turns.take(flags(out, 3), "train", first)
    second = Turns({"joey": [4.0, 5.0], "ours": [4.0, 5.0], "ours_bfloat16": [8.0, 5.0]})
    turns.take(flags(out, 3), "train", second)
    assert second.ran == ["joey", "ours", "ours_bfloat16"] * 2
    assert first.turns + second.turns == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 3]
    assert ratios(out)["ours/joey"]["pairs"] == [2.0, 8.0 / 7.0, 1.0, 1.0]  # the two did run
    assert ratios(out)["ours_bfloat16/joey"]["pairs"] == [4.0, 2.0, 1.0]
    before = harness.read(out)
    turns.take(flags(out, 3), "train", Turns({}))  # nothing is left to run
    assert [r for r in harness.read(out) if "pair" in r] == [r for r in before if "pair" in r]
    assert len(harness.read(out)) == len(before)


def test_fewer_systems_in_a_turn_are_paired_by_its_number(tmp_path):
    out = tmp_path / "lines"
    turns.take(
        flags(out, 1), "train", Turns({"joey": [1.0], "ours": [2.0], "ours_bfloat16": [3.0]})
    )
    turns.take(flags(out, 2, "onmt,ours"), "train", Turns({"onmt": [5.0] * 2, "ours": [10.0] * 2}))
    turns.take(flags(out, 4, "joey,ours"), "train", Turns({"joey": [4.0] * 3, "ours": [2.0] * 3}))
    assert ratios(out)["ours/onmt"]["pairs"] == [2.0, 2.0]
    assert ratios(out)["ours/joey"]["pairs"] == [2.0, 0.5, 0.5, 0.5]
    assert ratios(out)["ours_bfloat16/joey"]["pairs"] == [3.0]


def test_a_goal_that_is_not_reached_counts_against_us():
    def run(pair, system, minutes, reached):
        return {"pair": pair, "system": system, "value": minutes, "reached": reached}

    runs = [run(0, "joey", 20.0, True), run(0, "ours", 10.0, True)]
    runs += [run(1, "joey", 40.0, False), run(1, "ours", 10.0, True)]
    assert turns.summary("to_bleu", runs)[-1]["pairs"] == [0.5, 0.25]
    runs += [run(2, "joey", 20.0, True), run(2, "ours", 5.0, False)]
    lines = turns.summary("to_bleu", runs)
    assert (lines[-1]["pairs"], lines[-1]["median"]) == ([0.5, 0.25, None], 0.5)
    of_ours = next(line for line in lines if line.get("system") == "ours")
    assert (of_ours["runs"], of_ours["median"]) == ([10.0, 10.0, None], 10.0)
    assert turns.summary("to_bleu", runs[4:])[-1]["median"] is None
    assert "Infinity" not in json.dumps(lines)


@pytest.mark.parametrize("what, threads", [("decode", 2), ("train", 1)])
def test_a_file_of_other_runs_is_refused_and_kept(tmp_path, what, threads):
    out = tmp_path / "lines"
    turns.take(flags(out, 1, "joey"), "train", Turns({"joey": [1.0]}))
    before = out.read_text()
    with pytest.raises(SystemExit, match="lines has runs of .* name another file"):
        turns.take(flags(out, 2, "joey", threads), what, Turns({}))
    assert out.read_text() == before


def test_a_watched_training_ends_at_the_goal():
    watch = meter.Watch(25.0)
    watch.evaluated(200, 11.0, 2.0)
    with pytest.raises(meter.Reached):
        watch.evaluated(400, 25.0, 3.0)
    result = watch.result()
    assert result["reached"] and result["updates"] == 400 and result["evaluation_seconds"] == 5.0
    assert [evaluation["bleu"] for evaluation in result["history"]] == [11.0, 25.0]
    assert result["seconds"] >= result["history"][0]["seconds"] > 0


@pytest.mark.slow
def test_our_training_to_a_bleu(tmp_path, monkeypatch):
    from tfmann import synthetic
    from tfmann.cli import train

    monkeypatch.setattr(train, "TrainingSession", train.TrainingSession)  # put back afterwards
    corpus = tmp_path / "corpus"
    synthetic.write_corpus(corpus, train=3000, dev=10, test=10, seed=1)
    for side in ("src", "tgt"):
        os.rename(corpus / f"dev.{side}", corpus / f"val.{side}")
    hparams = ROOT / "hparams" / "tiny" / "luong.json"
    where = [f"--hparams_path={hparams}", f"--corpus_dir={corpus}", f"--out_dir={tmp_path / 'm'}"]
    args = ours_driver.parse(["to_bleu", *where, "--goal=0", "--every=2", "--most=6"])
    (result,) = args.run(args)
    assert result["reached"] and result["updates"] == 2
    assert (result["random_seed"], result["precision"]) == (1, "float32")
    assert 0 < result["evaluation_seconds"] < result["seconds"]

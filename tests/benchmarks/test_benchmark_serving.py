"""The benchmark of the server: answers to its requests, and counted failures."""

import importlib.util
import json

import pytest

from benchmarks import serving
from tfmann.serving import server

INSTALLED = all(importlib.util.find_spec(name) for name in server.EXTRA)


@pytest.mark.skipif(not INSTALLED, reason="the extra `serve` is not installed")
def test_serving_measures_callers_and_memory(tmp_path, model):
    out, lines = tmp_path / "serving.jsonl", tmp_path / "lines"
    lines.write_text("der hund\ndie katze\n", encoding="utf-8")
    serving.main([f"--model={model}", f"--lines={lines}", "--callers=1,3", "--turns=1",
                  "--seconds=0.5", "--soak=20", f"--out={out}"])  # fmt: skip
    one_caller, three_callers, soak = [
        json.loads(line) for line in out.read_text("utf-8").splitlines()
    ]
    assert (one_caller["callers"], one_caller["ratio"], one_caller["lines_per_batch"]) == (
        1,
        1.0,
        1.0,
    )
    assert three_callers["callers"] == 3 and three_callers["lines_per_batch"] > 1
    assert (
        one_caller["requests_per_second"] > 0 and one_caller["p99_ms"] >= one_caller["p50_ms"] > 0
    )
    assert soak["requests"] == 20 and soak["end_mib"] > 0
    assert one_caller["errors"] == three_callers["errors"] == soak["errors"] == 0


def test_a_caller_counts_what_is_not_answered():
    listener = server.bind("127.0.0.1", 0)
    port = listener.getsockname()[1]
    listener.close()
    load = serving.Load(port, ["der"], callers=2)
    load.run(requests=6)
    assert load.errors == 6 and load.latencies == []
    assert serving.quantile([4.0, 1.0, 3.0, 2.0], 0.5) == 3.0
    with pytest.raises(RuntimeError, match="no request was answered"):
        serving.quantile(load.latencies, 0.5)


@pytest.mark.parametrize("callers", ["8,32", "1,x", "1,0", ""])
def test_the_rates_are_compared_with_that_of_one_caller(callers, monkeypatch, capsys):
    monkeypatch.delattr(serving, "Server")  # none is started
    with pytest.raises(SystemExit):
        serving.main([f"--callers={callers}"])
    assert "the first 1" in capsys.readouterr().err

"""Every benchmark command at a toy size: it runs to its end and its records are whole."""

import contextlib
import importlib
import inspect
import io
import itertools
import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not installed

from benchmarks import (  # noqa: E402
    ablation,
    cache,
    cost,
    datastore,
    memory,
    parameters,
    report,
    rewriting,
    shortlist,
    translation_memory,
    word_memories,
)
from benchmarks.peers import compare  # noqa: E402
from benchmarks.speed import cells  # noqa: E402
from benchmarks.trust import decode, inputs  # noqa: E402
from benchmarks.trust.__main__ import main as trust  # noqa: E402
from tfmann import config, synthetic  # noqa: E402
from tfmann.cli.main import main as tfmann_command  # noqa: E402
from tfmann.errors import UsageError  # noqa: E402
from tfmann.ops import encoder_scan as scans  # noqa: E402
from tfmann.papers.claim import SpeedClaim  # noqa: E402
from tfmann.papers.claims import CLAIMS  # noqa: E402
from tfmann.training import meta_network  # noqa: E402

# Run as a command by another test.
TESTED_ELSEWHERE = {
    "benchmarks.recipes": "test_benchmark_recipes.py",
    "benchmarks.serving": "test_benchmark_serving.py",
    "benchmarks.speed": "test_benchmark_speed.py",
    "benchmarks.tasks": "test_task_runs.py",
    "benchmarks.verdicts": "test_benchmark_verdicts.py",
    "benchmarks.tasks.plot": "test_task_runs.py",
    "benchmarks.peers.ours_driver": "test_benchmark_peers.py",
    "benchmarks.peers.to_bleu": "test_benchmark_peers.py",
    "benchmarks.peers.marian_driver": "test_benchmark_marian.py",
    "benchmarks.peers.marian_weights": "test_benchmark_marian.py",
    "benchmarks.peers.memories": "test_benchmark_memories.py",
    "benchmarks.peers.ours_memory_driver": "test_benchmark_memories.py",
}
# These import the peers, which have environments of their own.
OF_PEERS = {f"benchmarks.peers.{name}_driver" for name in ("joey", "onmt", "dnc")}
# the processes that `kills` and `settings` start
INTERNAL = {"benchmarks.trust.forks", "benchmarks.trust.settings"}
TESTED_HERE = {
    "benchmarks.ablation", "benchmarks.cache", "benchmarks.cost", "benchmarks.datastore",
    "benchmarks.memory", "benchmarks.parameters", "benchmarks.peers.compare", "benchmarks.report",
    "benchmarks.rewriting", "benchmarks.shortlist", "benchmarks.translation_memory",
    "benchmarks.trust", "benchmarks.word_memories",
}  # fmt: skip


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Files under the names that the benchmarks read."""
    folder = tmp_path_factory.mktemp("corpus")
    synthetic.write_corpus(folder, train=300, dev=4, test=4, seed=1)
    for side in ("src", "tgt"):
        (folder / f"dev.{side}").rename(folder / f"val.{side}")
    return folder


ROWS = parameters.rows()


def read_records(capfd):
    """The records on standard output."""
    lines = capfd.readouterr().out.splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def test_no_command_is_left_out():
    files = [p for p in (ROOT / "benchmarks").rglob("*.py") if "__main__" in p.read_text("utf-8")]
    files += (ROOT / "benchmarks").rglob("__main__.py")
    names = {".".join(p.relative_to(ROOT).with_suffix("").parts) for p in files}
    commands = {name.removesuffix(".__main__") for name in names}
    assert commands == {*TESTED_HERE, *TESTED_ELSEWHERE, *OF_PEERS, *INTERNAL}
    for name, file in TESTED_ELSEWHERE.items():
        module = name.removeprefix("benchmarks.").split(".")[-1]
        assert module in (Path(__file__).parent / file).read_text("utf-8")


def test_the_documentation_names_every_command_and_no_other():
    texts = [
        (ROOT / "benchmarks" / name).read_text("utf-8") for name in ("README.md", "peers/README.md")
    ]
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("$(PY)", "python")
    named = {
        name.removesuffix(".__main__")
        for text in [*texts, makefile]
        for name in re.findall(r"python -m (benchmarks[\w.]*\w)", text)
    }
    started_by_others = {*OF_PEERS, *INTERNAL, "benchmarks.peers.marian_driver",
                         "benchmarks.peers.ours_memory_driver"}  # fmt: skip
    assert named == {*TESTED_HERE, *TESTED_ELSEWHERE} - started_by_others


# --- ablation -----------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.bfloat16
def test_ablation_measures_every_variant(corpus, capfd, untraced):
    where = [f"--hparams_path={ROOT}/hparams/tiny/luong.json", f"--corpus_dir={corpus}"]
    ablation.main([*where, "--rounds=1", "--updates=1", "--warmup=1"])
    first, *variants = read_records(capfd)
    assert first["round"] == 0
    assert [record["variant"] for record in variants] == list(ablation.VARIANTS)
    assert all(record["ratio"] > 0 and record["revision"] for record in variants)


@pytest.mark.parametrize("name", [name for name, v in ablation.VARIANTS.items() if "patch" in v])
def test_what_ablation_puts_in_takes_the_same_arguments(name):
    target, function = ablation.VARIANTS[name]["patch"]
    module, attribute = target.rsplit(".", 1)
    replaced = getattr(importlib.import_module(module), attribute)
    assert replaced.__module__.startswith("tfmann.ops.")
    assert list(inspect.signature(function).parameters) == list(
        inspect.signature(replaced).parameters
    )


@pytest.mark.parametrize("initial", [False, True])
@pytest.mark.parametrize("unit_type", ["gru", "lstm"])
def test_the_plain_scan_is_the_scan(unit_type, initial):
    steps, chains, rows, units, gates = 4, 2, 3, 5, 4 if unit_type == "lstm" else 3
    stream = np.random.default_rng(0)
    width = gates * units
    shapes = ([steps, chains, rows, width], [chains, units, width], [chains, rows, units])
    projected, kernel, first = (
        tf.Variable(stream.normal(size=shape), dtype="float32") for shape in shapes
    )

    @tf.function(autograph=False)
    def computed(function):
        with tf.GradientTape() as tape:
            start = first if initial else None
            states = function(unit_type, projected, kernel, tf.float32, start)
            total = tf.add_n([tf.reduce_sum(tf.sin(state)) for state in states])
        weights = [projected, kernel, first] if initial else [projected, kernel]
        return states, tape.gradient(total, weights)

    expected, actual = computed(scans.scan), computed(ablation.plain_scan)
    for ours, plain in zip(tf.nest.flatten(expected), tf.nest.flatten(actual)):
        np.testing.assert_allclose(plain, ours, rtol=1e-4, atol=1e-5)


# --- others -------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_cache_measures_training_and_decoding(tmp_path, untraced):
    out = tmp_path / "cache.jsonl"
    cache.main(["--sizes=tiny", "--precisions=float32", "--rounds=1", f"--out={out}"])
    records = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [record["what"] for record in records] == ["train", "decode"]
    assert all(record["ratio"] > 0 and record["base"] > 0 for record in records)


@pytest.mark.thorough
def test_rewriting_measures_every_variant(tmp_path, untraced):
    out = tmp_path / "rewriting.jsonl"
    rewriting.main(["--sizes=tiny", "--precisions=float32", "--rounds=1", f"--out={out}"])
    records = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [record["variant"] for record in records] == list(rewriting.VARIANTS)
    assert all(record["reached"] > 0 for record in records)


@pytest.mark.thorough
def test_a_shortlist_is_measured_with_a_drawn_and_a_trained_model(
    corpus, tmp_path, capfd, untraced
):
    shortlist.main(["--sizes=tiny", "--rounds=1", "--first=3", "--best=4"])
    drawn = read_records(capfd)
    lexicon = tmp_path / "l"
    source, words = ((corpus / f"train.{side}").read_text().split() for side in ("src", "tgt"))
    lines = [f"{source[0]} {words[0]} 0.5", *(f"<s> {word} 0.1" for word in sorted(set(words)))]
    lexicon.write_text("\n".join(lines))
    model = f"{ROOT}/tfmann/play/models/luong"
    text = [f"--source={corpus / 'test.src'}", f"--reference={corpus / 'test.tgt'}", "--lines=3"]
    everything = [f"--first={len(words)}", "--rounds=2"]
    shortlist.main([f"--out_dir={model}", f"--lexicon={lexicon}", *text, *everything])
    trained = read_records(capfd)
    for records in (drawn, trained):
        assert [record["search"] for record in records] == ["beam", "greedy"]
        assert all(record["ratio"] > 0 for record in records)
    assert all(record["list"] <= record["columns"] for record in drawn)
    assert all(0 < record["bleu"] <= 100 and 0 <= record["equal"] <= 1 for record in trained)
    with pytest.raises(SystemExit):
        shortlist.main([f"--out_dir={model}"])
    assert "--out_dir needs --lexicon" in capfd.readouterr().err


@pytest.mark.thorough
def test_a_memory_is_measured_in_an_invented_domain(capfd):
    translation_memory.main(["domain", "--pairs=20", "--shares=1", "--lines=4"])
    without_memory, *systems = read_records(capfd)
    assert without_memory["system"] == "alone" and without_memory["renamed"] == 1.0
    assert [record["system"] for record in systems] == list(translation_memory.SYSTEMS)
    for record in systems:
        assert record["dev"][str(record["factor"])] == max(record["dev"].values())
        assert record["tau"] == pytest.approx(record["median"] * record["factor"])


@pytest.mark.thorough
def test_stores_of_a_memory_are_measured(corpus, capfd):
    prefixes = f"--memory={corpus}/train", f"--test={corpus}/test"
    datastore.main([*prefixes, "--pairs=20", "--lines=4"])
    records = read_records(capfd)
    assert [record["store"] for record in records] == [None, *datastore.STORES]
    assert all((r["pairs"], r["lines"], r["width"]) == (20, 4, 64) for r in records)
    text, index, keys = (record["bytes"] for record in records[1:])
    targets = (corpus / "train.tgt").read_text("utf-8").splitlines()[:20]
    entries = sum(len(line.split()) + 1 for line in targets)  # </s> is one
    # readouts of 64 numbers of two bytes, and a little for their file's head
    assert 2 * 64 * entries <= keys - index < 2 * 64 * entries + 2000
    sides = [(corpus / f"train.{side}").read_bytes() for side in ("src", "tgt")]
    assert text == sum(len(b"".join(side.splitlines(keepends=True)[:20])) for side in sides)


def test_a_memory_smaller_than_asked_for_is_named(corpus):
    with pytest.raises(UsageError, match=r"train\.src has 300 pairs, fewer than 301"):
        datastore.main([f"--memory={corpus}/train", f"--test={corpus}/test", "--pairs=301"])


@pytest.mark.thorough
def test_adaptive_neighbors_are_measured(capfd, monkeypatch):
    monkeypatch.setattr(meta_network, "UPDATES", 2)
    flags = ["--pairs=40", "--shares=1", "--lines=30", "--adaptive=0.5"]
    translation_memory.main(["domain", *flags])
    _, control, fixed, adaptive = read_records(capfd)
    assert (control["system"], fixed["system"]) == ("SK-MT-16-8", "kNN-MT-0.5")
    assert adaptive["system"] == "adaptive"
    assert control["pairs"] == adaptive["pairs"] == 40 and adaptive["updates"] == 0
    assert set(adaptive["held_back"]["mean_shares"]) == {"0", "1", "2", "4", "8"}


@pytest.mark.thorough
def test_a_trained_model_is_measured_with_a_memory(corpus, capfd):
    prefixes = [f"--{name}={corpus}/{file}" for name, file in
                (("memory", "train"), ("dev", "val"), ("test", "test"))]  # fmt: skip
    model = f"--model={ROOT}/tfmann/play/models/luong"
    translation_memory.main(["corpus", model, *prefixes, "--lines=2"])
    without_memory, *systems = read_records(capfd)
    assert (without_memory["system"], without_memory["lines"], without_memory["cell"]) == (
        "alone",
        [2, 4],
        "luong",
    )
    assert [(record["system"], record["pairs"]) for record in systems] == [
        (name, 300) for name in translation_memory.SYSTEMS
    ]
    assert all(0 <= record["bleu"] <= 100 and record["tau"] > 0 for record in systems)


@pytest.mark.thorough
def test_memories_that_propose_words_are_measured(corpus, tmp_path, capfd, monkeypatch):
    run = tmp_path / "luong"
    shutil.copytree(ROOT / "tfmann" / "play" / "models" / "luong", run)
    prefixes = {f"{name}_prefix": str(corpus / file) for name, file in
                (("train", "train"), ("dev", "val"), ("test", "test"))}  # fmt: skip
    settings = json.loads((run / "hparams.json").read_text("utf-8"))
    (run / "hparams.json").write_text(json.dumps({**settings, **prefixes}), "utf-8")
    for name in ("val", "test"):
        (corpus / f"{name}.docs").write_text("0\n0\n1\n1\n", "utf-8")
    memory = tmp_path / "memory.npz"
    assert tfmann_command(["memorize", f"--model={run}", f"--output={memory}", "--updates=2"]) == 0
    monkeypatch.setattr(word_memories, "LAMBDAS", (0.0, 0.5))
    monkeypatch.setattr(word_memories, "THETAS", (0.3,))
    argv = [f"--model={run}", f"--lexical_memory={memory}", "--lines=2", "--infer_mode=greedy"]
    word_memories.main(argv)
    alone, lexical, cache = read_records(capfd)
    assert [r["system"] for r in (alone, lexical, cache)] == [
        "alone", "lexical_memory", "neural_cache",
    ]  # fmt: skip
    assert lexical["choices"][0] == [{"lexical_memory_lambda": 0.0}, alone["dev"]]
    assert cache["choices"][0][1] == alone["dev"] and alone["p"] is None
    assert lexical["dev"] == max(score for _, score in lexical["choices"])
    words = sum(words for *_, words, _ in alone["recall"])
    reference = (corpus / "test.tgt").read_text("utf-8").split()
    assert words == len(reference) and all(0 <= share <= 1 for *_, share in alone["recall"])


def test_what_retrieval_finds_is_measured(tmp_path, capfd):
    for name, lines in (("train.a", ["x y z w v", "u"]), ("train.b", ["p q r s t", "o"])):
        (tmp_path / name).write_text("\n".join(lines))
    (tmp_path / "test.a").write_text("x y z w v\nx y\nmissing")
    (tmp_path / "test.b").write_text("p q r s t\np\no")
    translation_memory.main(["retrieval", f"--prefix={tmp_path}", "--src=a", "--tgt=b"])
    [record] = read_records(capfd)
    assert (record["pairs"], record["known_source"], record["known_target"]) == (2, 1.0, 1.0)
    assert record["exact"] == pytest.approx(1 / 3, abs=1e-4)
    assert record["similarity"] == pytest.approx((1 + 2 / 5) / 3, abs=1e-3)
    assert 0 < record["bleu"] < 100


def test_renamed_words_change_places(capfd):
    vocabulary = [f"w{i}" for i in range(translation_memory._COMMON_WORDS + 9)]
    text = translation_memory.Text(["s"], [" ".join(vocabulary)])
    plain, changed = (translation_memory.renamed(text, vocabulary, s, 1).target for s in (0.0, 1.0))
    assert plain == text.target
    words = changed[0].split()
    assert sorted(words) == sorted(vocabulary)
    assert sum(a != b for a, b in zip(words, vocabulary)) == 9


@pytest.mark.parametrize("module", [cache, rewriting])
def test_a_size_that_is_not_there_is_refused(module, capsys):
    with pytest.raises(SystemExit):
        module.main(["--sizes=huge"])
    assert "expected some of tiny, small, paper, not 'huge'" in capsys.readouterr().err


def measure_in_this_process(*arguments):
    """`cost.timed_apart` through the command line of its process, but without the process."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        cost.main(["one", json.dumps(arguments)])
    return json.loads(out.getvalue())


def test_cost_measures_slots_and_peaks(monkeypatch, capfd, untraced):
    monkeypatch.setattr(cost, "SIZES", (3,))
    monkeypatch.setattr(cost, "timed_apart", measure_in_this_process)
    cost.main(["slots", "--rounds=1", "--updates=1", "--sentences=2", "--words=3"])
    slots = read_records(capfd)
    assert [r["varied"] for r in slots] == ["num_memory_locations", "memory_unit_size"]
    assert all(r["milliseconds"] > 0 and r["ratio_to_smallest"] > 0 for r in slots)
    small = json.dumps({"num_units": 8, "num_memory_locations": 4, "memory_unit_size": 6})
    cost.main(["peak", "--rows=ntm_1", f"--settings={small}", "--sentences=2", "--words=3"])
    (peak,) = read_records(capfd)
    assert peak["row"] == "ntm_1" and peak["peak_mib"] > 0 and peak["num_units"] == 8
    manifest = json.loads((ROOT / "data" / "iwslt15_vi_en.json").read_text("utf-8"))
    lines = {file["path"]: file["lines"] for file in manifest["files"]}
    source, target = peak["vocabularies"]
    assert (source, target) == (lines["vocab.vi"], lines["vocab.en"])
    assert peak["parameters"] > 8 * (source + 2 * target)  # two embeddings and the projection


def test_cost_names_the_rows_that_it_knows(capfd):
    with pytest.raises(SystemExit):
        cost.main(["peak", "--rows=luong,typo"])
    assert "expected some of luong, ntm_attention, " in capfd.readouterr().err


@pytest.mark.thorough
def test_memory_tells_the_peak_of_a_training(tmp_path, capfd):
    argv = ["--pairs=200", "--vocabulary=30", "--steps=2", f"--work_dir={tmp_path}"]
    assert memory.main(argv) == 0
    (record,) = read_records(capfd)
    assert record["pairs"] == 200 and 0 < record["peak_rss_mib"] <= record["limit_mib"]


@pytest.mark.thorough
def test_compare_trains_ours_in_turns(corpus, tmp_path):
    out = tmp_path / "turns.jsonl"
    compare.main([
        "--what=train", f"--corpus_dir={corpus}", "--systems=ours", "--pairs=1", "--steps=2",
        "--warmup=1", "--threads=1", "--src=src", "--tgt=tgt", "--test=test", f"--out={out}",
        f"--work_dir={tmp_path}", f"--ours_hparams={ROOT}/hparams/tiny/luong.json",
    ])  # fmt: skip
    measured, median = (json.loads(line) for line in out.read_text("utf-8").splitlines())
    assert measured["system"] == median["system"] == "ours" and measured["updates"] == 2
    assert median["runs"] == [measured["value"]] and measured["value"] > 0


@pytest.mark.slow
def test_trust_kills_one_run(tmp_path):
    out = tmp_path / "trust.jsonl"
    assert trust(["kills", "--count=1", "--block=1", f"--out={out}"]) == 0
    (record,) = (json.loads(line) for line in out.read_text("utf-8").splitlines())
    assert record["points"] == record["identical"] == 1


def test_trust_draws_bad_input(tmp_path, monkeypatch):
    """Of one kind; test_bad_inputs.py draws all kinds."""
    monkeypatch.setattr(inputs, "KINDS", {"archive": inputs.KINDS["archive"]})
    out = tmp_path / "trust.jsonl"
    assert trust(["inputs", "--count=10", f"--out={out}"]) == 0
    (record,) = (json.loads(line) for line in out.read_text("utf-8").splitlines())
    assert record["taken"] + record["refused"] >= 10 and record["failed"] == 0


@pytest.mark.thorough
def test_trust_checks_what_decoding_promises(tmp_path, monkeypatch, untraced):
    monkeypatch.setattr(decode, "CELLS", {"luong": {}, "cache": decode.CELLS["cache"]})
    monkeypatch.setattr(decode, "LINES", 2)
    out = tmp_path / "trust.jsonl"
    assert trust(["decode", "--count=2", "--weights=1", f"--out={out}"]) == 0
    records = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [record["cell"] for record in records] == ["luong", "cache"]
    assert all(record["draws"] == 1 and not record["wrong"] for record in records)


def test_trust_sees_decoding_that_breaks_its_promises(monkeypatch, untraced):
    """Scores that depend on what else is in the batch."""
    translate, stream = decode.Translator.translate, itertools.count(1)

    def careless(self, *args, **kwargs):
        shift = 0.01 * next(stream)
        for n_best in translate(self, *args, **kwargs):
            yield [hypothesis._replace(score=hypothesis.score + shift) for hypothesis in n_best]

    monkeypatch.setattr(decode, "CELLS", {"luong": {}})
    monkeypatch.setattr(decode, "LINES", 2)
    monkeypatch.setattr(decode.Translator, "translate", careless)
    (record,) = decode.run(1, 1, seed=1)
    promises = {wrong["what"].partition(":")[0] for wrong in record["wrong"]}
    assert promises == {"neighbours", "order", "beam 1 is greedy", "export", "score"}


def test_the_report_is_made_of_the_results():
    assert report.render() == (ROOT / "benchmarks" / "RESULTS.md").read_text("utf-8")


def test_parameters_of_the_papers_sizes_are_counted(monkeypatch, capfd):
    monkeypatch.setattr(parameters, "rows", lambda: [("zh-en", "rnnsearch"), ("vi-en", "luong")])
    parameters.main([])
    (line,) = read_records(capfd)  # the vocabularies of vi-en are not fixed by its settings
    assert line["parameters"] == 53_981_488 and line["vocabulary"] == 30_000  # Table 1: 53.98M
    assert {("zh-en", row) for row in ("rnnsearch", "kvmematt_r1", "kvmematt_r2")} <= set(ROWS)


def test_claims_about_rewriting_name_variants_that_are_timed():
    claims = [c for c in CLAIMS if isinstance(c, SpeedClaim) and c.file == "rewriting.jsonl"]
    assert len(claims) == 5
    for claim in claims:
        assert claim.record["size"] in rewriting.SIZES
        row, settings = rewriting.VARIANTS[claim.record["variant"]]
        weights = []
        for size in rewriting.SIZES.values():
            hparams = config.make(settings, str(ROOT / "hparams" / f"{size.files}{row}.json"))
            weights.append(hparams.eos_attention_weight > 0)
        assert set(weights) == {claim.record["variant"].endswith("_eos")}


def test_claims_about_speed_name_cells_that_are_timed():
    timed = [c for c in CLAIMS if isinstance(c, SpeedClaim) and c.file == "speed.jsonl"]
    named = {cell["cell"] for c in timed for cell in (c.record, {**c.record, **c.rival})}
    assert len(named) >= 5 and named <= set(cells.ROWS)
    assert {c.record["what"] for c in timed} <= {"train", "beam"}

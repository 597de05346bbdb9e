"""Marian in `benchmarks.peers`: its driver and log, the shared weights, turns, tables."""

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not installed

from helpers import cell_runs, small_models  # noqa: E402
from oracles.recurrent import sigmoid  # noqa: E402

from benchmarks.peers import (  # noqa: E402
    compare,
    corpus,
    marian_weights,
    meter,
    ours_driver,
    systems,
    table,
    turns,
)
from tfmann import synthetic  # noqa: E402
from tfmann.data.vocab import EOS_ID, SOS_ID, UNK_ID  # noqa: E402
from tfmann.training import checkpoint  # noqa: E402
from tfmann.training.train_step import TrainStep  # noqa: E402

SETUP = systems.Setup(Path("/c"), "de", "en", Path("/w"), Path("/h.json"), Path("/model"), 2)
LOG = """\
[2026-01-01 10:00:00] [training] Using 1 CPUs
[2026-01-01 10:00:01] Ep. 1 : Up. 1 : Sen. 64 : Cost 8.69884491 : Time 4.30s : 119.14 words/s
[2026] Ep. 1 : Up. 2 : Sen. 1,128 : Cost 8.5 : Time 0.50s : 1,330.00 words/s : gNorm
[2026-01-01 10:00:04] Ep. 1 : Up. 1,003 : Sen. 1,192 : Cost 7.25 : Time 1.00s : 900.40 words/s
[2026-01-01 10:00:05] Training finished
""".splitlines(keepends=True)


@pytest.fixture
def marian(monkeypatch):
    """The drivers run in environments of their own, where their folder is the first in the path."""
    monkeypatch.syspath_prepend(str(systems.PEERS))
    import driver
    import marian_driver

    def parse(command):
        monkeypatch.setattr(sys, "argv", command[1:])
        return driver.parse()

    marian_driver.parse = parse
    return marian_driver


def options(words):
    """The options of a command line by name."""
    named = {}
    for word in words:
        if word.startswith("--"):
            named[word[2:]] = value = []
        else:
            value.append(word)
    return {name: " ".join(values) for name, values in named.items()}


def test_a_log_has_the_words_of_every_update(marian):
    updates = [marian.read_update(line) for line in LOG]
    assert updates == [None, (1, 8.69884491, 512), (2, 8.5, 665), (1003, 7.25, 900), None]
    processor_seconds = itertools.count(10.0, 0.5)
    clock = meter.UpdateMeter(1, lambda: next(processor_seconds))
    log = iter(LOG)
    assert marian.follow(log, clock, 3) == 7.25
    result = clock.result()
    assert (result["words"], result["updates"], result["cpu_seconds"]) == (665 + 900, 2, 1.0)
    assert next(log) == LOG[-1]  # what follows is left for the next turn


def test_a_training_that_ends_too_early_is_refused(marian):
    with pytest.raises(SystemExit, match="Marian ended, 2 updates too early"):
        marian.follow(iter(LOG), meter.UpdateMeter(1), 5)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_update_of_marian_has_64_sentences(marian, threads):
    setup = systems.Setup(Path("/c"), "de", "en", Path("/w"), Path("/h"), None, threads)
    command = systems.train_command(setup, "marian", Path("/m"), 20, 120)
    assert command[0].endswith("/marian/bin/python")
    named = options(marian.arguments(marian.train_options(marian.parse(command))))
    assert named["mini-batch"] == "64" and named["cpu-threads"] == str(threads)
    assert ("sync-sgd" in named) == (threads > 1)
    assert named["train-sets"] == "/c/train.de /c/train.en" and named["after"] == "140u"
    assert named["vocabs"] == "/w/vocab/marian.de /w/vocab/marian.en"
    resident = marian.parse([*command, "--resident"])
    assert options(marian.arguments(marian.train_options(resident)))["after"] == "0e"


@pytest.mark.parametrize("system", systems.MARIAN)
def test_marians_variants_decode(marian, system):
    flags = marian.parse(systems.decode_command(SETUP, system))
    named = options(marian.arguments(marian.decode_options(flags)))
    assert named["models"] == "/w/marian/model.npz" and named["beam-size"] == "10"
    assert named.get("gemm-type") == ("packed8" if "int8" in system else None)
    assert ("optimize" in named) == ("int8" in system)
    shortlist = "/w/marian/shortlist.txt 100 100 0" if "shortlist" in system else None
    assert named.get("shortlist") == shortlist and "skip-cost" not in named
    greedy = marian.parse(systems.decode_command(SETUP, system, beam_width=1))
    assert "skip-cost" in options(marian.arguments(marian.decode_options(greedy)))


def test_our_rnnsearch_is_marians_model_and_decodes_its_weights():
    train = ours_driver.parse(systems.train_command(SETUP, "rnnsearch", Path("/m"), 20, 120)[3:])
    assert json.loads(train.settings) == {"precision": "float32", **systems.RNNSEARCH}
    for width, search in ((1, {"infer_mode": "greedy"}), (10, {"infer_mode": "beam_search"})):
        decode = ours_driver.parse(systems.decode_command(SETUP, "rnnsearch", width)[3:])
        assert decode.out_dir == "/w/marian/ours"
        assert search.items() <= json.loads(decode.settings).items()


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--what=beam", "--systems=ours,marian"], "--what=beam needs --ours_out_dir"),
        (["--what=train", "--systems=marian_int8"], "marian_int8 only decode"),
        (["--what=train", "--systems=joey", "--resident"], "--resident is for ours and Marian"),
        (["--what=train", "--systems=moses"], "--systems: there are joey"),
    ],
)
def test_what_a_system_cannot_do_is_refused(flags, message, capsys):
    with pytest.raises(SystemExit):
        compare.parse(["--corpus_dir=/c", *flags])
    assert message in capsys.readouterr().err


# --- the weights of one model in both programs --------------------------------------------------


def marian_gru(weights, prefix, x, h, final=False):
    """A GRU as Marian computes it: gates reset and update; the last one's bias is in the reset."""
    gates = sigmoid(
        x @ weights[f"{prefix}_W"] + h @ weights[f"{prefix}_U"] + weights[f"{prefix}_b"]
    )
    reset, update = np.split(gates, 2)
    bias = weights[f"{prefix}_bx"]
    from_state = h @ weights[f"{prefix}_Ux"]
    candidate = reset * (from_state + bias) if final else reset * from_state + bias
    return update * h + (1 - update) * np.tanh(x @ weights[f"{prefix}_Wx"] + candidate)


def marian_logits(weights, source, target):
    """Logits `[T + 1, V]` of Marian's `s2s` for one sentence: words' rows of its vocabularies."""
    words = weights["encoder_Wemb"][[*source, 0]]
    units = weights["encoder_bi_Ux"].shape[0]
    sides = []
    for prefix, order in (("encoder_bi", words), ("encoder_bi_r", words[::-1])):
        states = [np.zeros(units)]
        for word in order:
            states.append(marian_gru(weights, prefix, word, states[-1]))
        sides.append(states[1:])
    annotations = np.concatenate([sides[0], sides[1][::-1]], axis=-1)
    start = annotations.mean(axis=0) @ weights["decoder_ff_state_W"]
    state = np.tanh(start + weights["decoder_ff_state_b"])
    keys = annotations @ weights["decoder_Wc_att"] + weights["decoder_b_att"]
    first = np.zeros((1, weights["decoder_Wemb"].shape[1]))
    logits = []
    for word in np.concatenate([first, weights["decoder_Wemb"][target]]):
        query = marian_gru(weights, "decoder_cell1", word, state)
        energies = np.tanh(keys + query @ weights["decoder_W_comb_att"]) @ weights["decoder_U_att"]
        shares = np.exp(energies - energies.max())
        context = (shares / shares.sum() * annotations).sum(axis=0)
        state = marian_gru(weights, "decoder_cell2", context, query, final=True)
        parts = [part @ weights[f"decoder_ff_logit_l1_W{i}"] + weights[f"decoder_ff_logit_l1_b{i}"]
                 for i, part in enumerate((word, state, context))]  # fmt: skip
        output = np.tanh(sum(parts)) @ weights["decoder_ff_logit_l2_Wt"].T
        logits.append(output + weights["decoder_ff_logit_l2_b"])
    return np.array(logits)


def test_marian_computes_the_same_from_the_weights():
    model = small_models.model("rnnsearch", projection_bias=False, attention_size=16)
    names = [variable.name.split(":")[0] for variable in model.trainable_variables]
    for name, variable in zip(names, model.trainable_variables):
        free = marian_weights.free_weights(name, variable.shape)
        if free is not None:
            assert 0 < (free == 0).sum() < free.size / 2
            variable.assign(variable * free)
    batch = small_models.batch([(4, 5)])
    _, outputs, embedded, *_ = cell_runs.decode(model, batch, record=(), compiled=False)
    readout = model.readout(outputs[:, 0], embedded[: len(outputs), 0])
    ours = model.projection()(readout).numpy()
    arrays = {n: v.numpy().astype(float) for n, v in zip(names, model.trainable_variables)}
    converted = marian_weights.convert(arrays)
    weights = {name: array.astype(float) for name, array in converted.items()}
    weights.update({n: a[0] for n, a in weights.items() if a.shape[0] == 1})
    # Marian's vocabularies have `</s>`, `<unk>`, then the words; ours one special more.
    source, target = (np.asarray(ids)[0] - 1 for ids in (batch.source, batch.target_in))
    theirs = marian_logits(weights, source[:-1], target[1:])
    columns = [EOS_ID, UNK_ID, *range(EOS_ID + 1, small_models.TARGET_SIZE)]
    np.testing.assert_allclose(theirs, ours[:, columns], atol=1e-4)
    assert SOS_ID not in columns


@pytest.mark.slow
def test_the_shared_model_is_trained_and_written(tmp_path, monkeypatch):
    monkeypatch.setattr(TrainStep, "update", TrainStep.update)  # put back afterwards
    folder = tmp_path / "corpus"
    synthetic.write_corpus(folder, train=300, dev=4, test=4, seed=1)
    for side, language in (("src", "de"), ("tgt", "en")):
        for part, name in (("train", "train"), ("dev", "val")):
            (folder / f"{part}.{side}").rename(folder / f"{name}.{language}")
        corpus.write_vocabularies(folder / "train", language, tmp_path / "vocab")
    run = [f"--out_dir={tmp_path / 'ours'}"]
    where = [f"--corpus_dir={folder}", f"--vocab_prefix={tmp_path / 'vocab' / 'ours'}"]
    marian_weights.main(["train", *run, *where, "--steps=2", "--precision=float32"])
    arrays = checkpoint.read_arrays(str(tmp_path / "ours" / "best_bleu"))
    start = arrays["model/target_embedding"][SOS_ID]
    bias = arrays["model/cell/state_gru/bias"]
    assert not start.any() and not bias[512:].any() and bias[:512].all()
    sizes = {name: np.zeros_like(a) for name, a in marian_weights.convert(arrays).items()}
    np.savez(tmp_path / "template.npz", **sizes)
    written = tmp_path / "model.npz"
    template = f"--template={tmp_path / 'template.npz'}"
    marian_weights.main(["convert", *run, template, f"--output={written}"])
    with np.load(written) as model:
        words = len((tmp_path / "vocab" / "marian.en").read_text("utf-8").splitlines())
        assert len(model["decoder_Wemb"]) == words and model["decoder_Wemb"].any()


def test_a_model_of_other_sizes_is_no_template(tmp_path):
    weights = {"a": np.zeros([2, 3], np.float32), "b": np.zeros([1, 2], np.float32)}
    settings = np.frombuffer(b"dim-emb: 2\0", np.int8)
    np.savez(tmp_path / "model.npz", **weights, **{"special:model.yml": settings})
    new = {name: array + 1 for name, array in weights.items()}
    marian_weights.write_model(new, tmp_path / "model.npz", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as written:
        assert set(written.files) == {"a", "b", "special:model.yml"} and (written["a"] == 1).all()
    for wrong in ({"a": weights["a"]}, {**weights, "b": np.zeros([1, 9])}):
        with pytest.raises(SystemExit, match=r"model.npz: b is \(1, 2\) there"):
            marian_weights.write_model(wrong, tmp_path / "model.npz", tmp_path / "no.npz")
    assert not (tmp_path / "no.npz").exists()


def test_a_lexicon_is_written_for_marian(tmp_path):
    lexicon = tmp_path / "ours.txt"
    lexicon.write_text("<s>\tthe\t0.2\nmann\tman\t0.9\nmann\tguy\t0.1\n", "utf-8")
    output = tmp_path / "theirs.txt"
    marian_weights.main(["shortlist", f"--lexicon={lexicon}", f"--output={output}"])
    assert output.read_text("utf-8") == "man mann 0.9\nguy mann 0.1\n"


# --- turns of resident processes ----------------------------------------------------------------

PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import meter
records = ({"turn": turn} for turn in range(9))
print("a log on standard output")
meter.take_turns(records, lambda record: print(json.dumps(record), flush=True), sys.argv[2] == "1")
"""


def test_a_resident_process_measures_once_a_line(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(systems.PEERS)]
    process = systems.Process([*command, "1"], 1, tmp_path / "log")
    assert [process.record(), process.next_turn(), process.next_turn()] == [
        {"turn": 0}, {"turn": 1}, {"turn": 2}
    ]  # fmt: skip
    process.end()
    record = systems.run([*command, "0"], 1, tmp_path / "log")
    assert record["turn"] == 0 and record["wall_seconds"] > 0


def test_a_process_that_fails_shows_its_log(tmp_path):
    failing = [sys.executable, "-c", "import sys; sys.exit('no model')"]
    with pytest.raises(SystemExit, match=r"status 1.*\nno model\n.*log"):
        systems.run(failing, 1, tmp_path / "log")
    with pytest.raises(SystemExit, match="run benchmarks/peers/setup.sh first"):
        systems.Process(["/no/python"], 1, tmp_path / "log")


def test_ratios_are_also_of_processor_seconds():
    def run(system, pair, rate, seconds, **more):
        return {"system": system, "pair": pair, "value": rate, "seconds": seconds, **more}

    runs = [
        run("marian", 0, 10.0, 6.0, cpu_seconds=3.0),
        run("ours", 0, 20.0, 6.0, cpu_seconds=2.0),
    ]
    runs += [run("marian", 1, 10.0, 1.0), run("ours", 1, 40.0, 1.0, cpu_seconds=1.0)]
    line = turns.summary("beam", runs)[-1]
    assert line["pairs"] == [2.0, 4.0]
    # 60 / 2 and 120 / 2 words a processor second; turn 1 lacks those of Marian.
    assert line["cpu_pairs"] == [3.0] and line["cpu_median"] == 3.0
    assert "cpu_pairs" not in turns.summary("beam", runs[2:])[-1]


def test_tables_have_both_rates_where_processor_seconds_are_known():
    def run(system, rate, **more):
        return {"pair": 0, "system": system, "value": rate, "seconds": 6.0, "cpu": "X", "cores": 2,
                "threads": 1, **more}  # fmt: skip

    files = {
        "peers-marian-beam-1": [
            run("marian", 10.0, cpu_seconds=3.0, bleu=20.06, words_per_sentence=12.5),
            run("ours", 20.0, cpu_seconds=2.0, bleu=17.0, words_per_sentence=10.5),
        ],
        "peers-memory-tasks-2": [
            run("dnc", 1.0, cpu_seconds=6.0, size={}), run("ours_xla", 5.0, size={})
        ],
    }  # fmt: skip
    marian, memory = table.sections(lambda name: files.get(name, []))
    assert marian[0] == "Compared with Marian" and "### Beam 10, words/s, 1 thread" in marian[2]
    assert "| marian | 1 | 10.0 | 20.0 | 20.1 | 12.5 |" in marian[2]
    assert "- ours/marian: 2.00, turns: 1 (2.00); by processor seconds 3.00 (3.00)" in marian[2]
    assert "### Updates/s, size tasks, 2 threads" in memory[2]
    assert (
        "| ours_xla | 1 | 5.0 | - |" in memory[2]
        and "- ours_xla/dnc: 5.00, turns: 1 (5.00)" in memory[2]
    )

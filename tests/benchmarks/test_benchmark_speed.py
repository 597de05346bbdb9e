"""`make bench`: what is measured, recorded, shown and skipped."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not installed

from benchmarks import flops, harness, rewriting  # noqa: E402
from benchmarks.speed import batches, cells, table  # noqa: E402
from benchmarks.speed.__main__ import main  # noqa: E402
from tfmann.utils.provenance import provenance  # noqa: E402


@pytest.mark.parametrize("size", cells.SIZES)
def test_every_row_is_a_configuration_and_has_a_reference(size):
    for row, (reference, _) in cells.ROWS.items():
        assert reference != row and reference in ("rnnsearch", "luong")
        h = cells.hparams(row, size)
        assert h.projection_bias and h.num_units == cells.SIZES[size].units


def test_all_cells_get_the_same_batches():
    size = cells.SIZES["tiny"]

    def training_batches(row):
        h = cells.hparams(row, "tiny")
        return batches.of_training(h, size.words, size.vocabulary, 3)

    first, with_history = training_batches("rnnsearch"), training_batches("summary")
    assert len(first) == 3
    for plain_batch, history_batch in zip(first, with_history):
        assert (plain_batch.source == history_batch.source).all() and (
            plain_batch.target_out == history_batch.target_out
        ).all()
        assert not plain_batch.history.size and history_batch.history.shape[1] == 3
    counted = [n for batch in first for n in batches.lengths(batch)]
    assert sum(n.target for n in counted) == sum(batch.words for batch in first)
    assert counted[0].before == () and len(batches.lengths(with_history[0])[0].before) == 3


def test_lengths_are_about_the_requested_mean():
    corpus = batches.corpus(2000, 25, 100)
    words = len(corpus.target_ids) / len(corpus) + 1
    assert 24 < words < 26
    assert corpus.target_ids.min() >= 3 and corpus.target_ids.max() < 100


def test_a_mapped_corpus_holds_the_same(tmp_path):
    in_memory, mapped = (batches.corpus(50, 5, 30, folder) for folder in (None, str(tmp_path)))
    assert all((a == b).all() for a, b in zip(in_memory, mapped))


def record(what, cell, precision="float32", **values):
    head = {"benchmark": "speed", "what": what, "cell": cell, "size": "small"}
    return {**head, "precision": precision, "pairs": 5, **values, **provenance()}


TRAINED = {
    "words_per_second": 1234.4, "ratio": 0.912, "reference": "luong", "allow": 0.95, "share": 0.61,
    "rate": 123.4e9, "rate_shape": [2, 3, 4],
}  # fmt: skip
STARTED = {**record("start", "help", seconds=0.5), "size": "-"}


def test_tables_show_what_was_measured_and_leave_out_what_was_not():
    page = "\n".join(table.speed([record("train", "ntm_attention", **TRAINED), STARTED]))
    assert "| ntm_attention | 1234 | 0.91 of luong | 0.95 | 0.61 | - | - | - | - |" in page
    assert "float32: up to 123 GFLOP/s (2x3x4)" in page
    assert "`--help`: 0.50 s" in page
    assert "decoding" not in page
    grown = {"size": "small", "cell": "dnc", "what": "N doubled", "ratio": 2.0}
    assert "| small | dnc | N doubled | 2.00 |" in table.scaling([grown])


def test_records_of_other_revisions_are_named():
    def trained(cell, revision, precision="float32"):
        return {**record("train", cell, precision, **TRAINED), "revision": revision}

    of_new = trained("ntm", "new"), trained("dnc", "new", "mixed_bfloat16")
    records = [*(trained(cell, "old") for cell in ("ntm", "luong", "mad", "dnc")), *of_new]
    page = table.speed(records)  # the new record of ntm takes the place of the old one
    assert page[-2] == "Revision old; new: dnc (train, bfloat16), ntm (train, float32)."
    assert table.speed(records[:4])[-2] == "Revision old."


def test_what_a_file_has_of_this_revision_is_not_measured_again(tmp_path, monkeypatch):
    out, measured_cells = tmp_path / "speed.jsonl", []

    def measured(key):
        measured_cells.append((key["cell"], key["precision"]))
        return TRAINED

    monkeypatch.setattr("benchmarks.speed.__main__._measure_apart", measured)
    older = {**record("train", "ntm", **TRAINED), "revision": "another"}
    harness.write([record("train", "luong", **TRAINED), older], out)
    flags = ["--sizes=small", "--cells=luong,ntm", "--what=train", f"--out={out}"]
    assert main([*flags, "--precisions=float32"]) == 0
    assert measured_cells == [("ntm", "float32")]
    assert main([*flags, "--precisions=float32"]) == 0 and len(measured_cells) == 1
    assert main([*flags, "--precisions=float32", "--pairs=6"]) == 0 and len(measured_cells) == 3
    assert main(flags) == 0
    assert measured_cells[3:] == [("luong", "mixed_bfloat16"), ("ntm", "mixed_bfloat16")]
    assert harness.known(tmp_path / "none", "speed", ("cell",)) == {}


def test_a_measurement_that_fails_stops_no_other(tmp_path, monkeypatch, capsys):
    def measured(key):
        if key["cell"] == "luong":
            raise subprocess.CalledProcessError(-9, "python")
        return TRAINED

    monkeypatch.setattr("benchmarks.speed.__main__._measure_apart", measured)
    out = tmp_path / "speed.jsonl"
    flags = ["--sizes=small", "--cells=luong,ntm", "--what=train", "--precisions=float32"]
    assert main([*flags, f"--out={out}"]) == 1
    assert [json.loads(line)["cell"] for line in out.read_text().splitlines()] == ["ntm"]
    assert "luong" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--cells=nothing", "--sizes=huge", "--what=all"])
def test_unknown_names_are_refused(flag, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([flag])
    assert stopped.value.code == 2
    assert flag.split("=")[1] in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_measures_and_resumes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    out = tmp_path / "speed.jsonl"
    argv = ["--sizes=tiny", "--cells=cache", "--precisions=float32", "--pairs=1", f"--out={out}"]
    assert main(argv) == 0
    records = [json.loads(line) for line in out.read_text().splitlines()]
    of_cache = {r["what"]: r for r in records if r["cell"] == "cache"}
    assert set(of_cache) == {"train", "beam", "greedy", "memory_train", "memory_beam", "start"}
    for what in ("train", "beam", "greedy"):
        assert of_cache[what]["reference"] == "rnnsearch" and of_cache[what]["words_per_second"] > 0
        assert of_cache[what]["share"] > 0 and of_cache[what]["ratio"] > 0
    assert of_cache["memory_train"]["peak_mib"] > of_cache["memory_train"]["more_mib"] > 0
    before = out.read_text()
    assert main(argv) == 0
    assert out.read_text() == before
    assert main(["scaling", "--sizes=tiny", "--cells=rnnsearch", "--pairs=1", f"--out={out}"]) == 0
    grown = [json.loads(line) for line in out.read_text().splitlines()[-2:]]
    assert {growth["what"] for growth in grown} == {"T doubled", "corpus tenfold"}


@pytest.mark.parametrize("size", rewriting.SIZES)
def test_every_rewriting_variant_has_its_file(size):
    for row in {"rnnsearch", *(row for row, _ in rewriting.VARIANTS.values())}:
        files = rewriting.SIZES[size].files
        assert (ROOT / "hparams" / f"{files}{row}.json").is_file()


def test_operations_are_counted_of_every_row_and_size():
    for size, dimensions in cells.SIZES.items():
        n = flops.Lengths(dimensions.words, dimensions.words, (dimensions.words,))
        for row in cells.ROWS:
            h = cells.hparams(row, size)
            some = n._replace(before=n.before * 3) if h.cell == "summary" else n
            assert flops.training(h, some, dimensions.vocabulary) > 0
            assert flops.decoding_step(h, some, dimensions.vocabulary) > 0

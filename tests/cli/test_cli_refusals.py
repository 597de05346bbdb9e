"""The command line with a model: impossible requests, and interruptions."""

import os
import signal
from pathlib import Path

import pytest
from helpers.command_line import (
    LINES,
    command,
    fails,
    fails_after_note,
    run_in_a_process,
    tree,
    write_model,
)

from tfmann import api, nmt
from tfmann.cli import inspection, memorize
from tfmann.data import input_checks, text_files
from tfmann.training import checkpoint


@pytest.mark.parametrize(
    "flags, status, words",
    [
        ({"inference_input_file": "{0}/absent"}, 1, "no such file: .*absent"),
        ({"inference_input_file": "{0}"}, 1, "is a directory"),
        ({"inference_input_file": "{0}/latin"}, 1, "latin, line 2: not UTF-8"),
        ({"inference_output_file": "{0}/absent/out"}, 1, "there is no folder .*absent"),
        ({"alignment_file": "{0}/absent/out"}, 1, "there is no folder .*absent"),
        ({"inference_output_file": "{0}"}, 1, "--inference_output_file=.* is a folder; expected"),
        ({"ckpt": "{0}/absent"}, 1, "--ckpt=.*absent: there is no checkpoint; expected"),
        ({"mode": "score", "inference_ref_file": "{0}/short"}, 1, "unequal line counts"),
        ({"mode": "align", "inference_ref_file": "{0}/absent"}, 1, "no such file"),
        ({"mode": "score", "inference_ref_file": "{0}/in", "inference_input_file": "-"}, 2, "two"),
        ({"mode": "eval"}, 2, "needs --inference_ref_file"),
        ({"num_units": 9}, 2, r"num_units=9 \(saved: 8\)"),
        ({"beam_width": 1, "num_translations_per_input": 2}, 2, "is more than beam_width=1"),
        ({"out_dir": "{0}"}, 1, "holds no trained model"),
    ],
)
def test_impossible_requests_to_a_model(model, source, tmp_path, capsys, flags, status, words):
    (tmp_path / "out").write_text("old\n")
    (tmp_path / "latin").write_bytes(b"der\n\xff\n")
    (tmp_path / "short").write_text("DER\n")
    all_flags = {"out_dir": model, "inference_input_file": source,
             "inference_output_file": tmp_path / "out"}  # fmt: skip
    all_flags.update({k: v.format(tmp_path) if isinstance(v, str) else v for k, v in flags.items()})
    before = tree(tmp_path, model)
    fails_after_note([f"--{k}={v}" for k, v in all_flags.items()], capsys, status, words)
    assert tree(tmp_path, model) == before


@pytest.mark.parametrize(
    "mode, is_set",
    [*((mode, False) for mode in ("infer", "score", "align", "eval", "tune")),
     ("eval", True), ("tune", True)],
)  # fmt: skip
def test_references_of_other_lengths_are_named_before_the_work(
    model, tmp_path, capsys, monkeypatch, mode, is_set
):
    """Those of a file, and those of the sets of a run."""
    monkeypatch.setattr(api, "load", lambda *_, **__: pytest.fail("the model was loaded"))
    paths = [f"{tmp_path / 'a'}.{side}" for side in ("src", "tgt")]
    for path, count in zip(paths, (4, 3)):
        text_files.write_lines(path, ["hund"] * count)
    flags = dict(zip(("inference_input_file", "inference_ref_file"), paths))
    argv = command(model, mode=mode, **({"dev_prefix": tmp_path / "a"} if is_set else flags))
    fails(argv, capsys, 1, f"unequal line counts: {paths[0]} has 4, {paths[1]} has 3")


@pytest.mark.parametrize(
    ("flag", "content", "words"),
    [
        ("inference_input_file", b"der\n" * 4 + b"hund \xff\n", "given, line 5: not UTF-8"),
        ("inference_ref_file", b"DER\n" * 4 + b"\xff\n", "given, line 5: not UTF-8"),
        ("inference_prefix_file", b"\n" * 4 + b"\xff\n", "given, line 5: not UTF-8"),
        ("inference_prefix_file", b"\n" * 4, "in has 5, .*given has 4 lines"),
        ("inference_constraint_file", b"\n" * 6, "in has 5, .*given has 6 lines"),
        ("inference_document_file", b"1\n" * 4 + b"two\n", "given, line 5: expected the document"),
    ],
)
def test_a_bad_line_is_named_before_the_work(
    model, tmp_path, capsys, monkeypatch, flag, content, words
):
    """However late it comes: what was translated before it would be lost."""
    monkeypatch.setattr(api, "load", lambda *_, **__: pytest.fail("the model was loaded"))
    text_files.write_lines(tmp_path / "in", ["der"] * 5)
    (tmp_path / "given").write_bytes(content)
    flags = {"inference_input_file": tmp_path / "in", flag: tmp_path / "given"}
    if flag == "inference_document_file":
        flags["neural_cache_size"] = 4
    fails(command(model, **flags), capsys, 1, words)


def test_a_folder_in_the_place_of_text_is_named_before_the_work(
    model, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(api, "load", lambda *_, **__: pytest.fail("the model was loaded"))
    argv = command(model, inference_input_file=tmp_path)
    fails(argv, capsys, 1, f"{tmp_path} is a directory; a file was expected")


@pytest.mark.parametrize("source", ["-", "pipe"])
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"mode": "tune"}, "--mode=tune translates the text several times: give a file"),
        ({"document_history": "other"}, "--document_history=other needs whole documents: give a"),
        ({"mode": "eval", "gold_file": "in"}, "--gold_file is of the sentences of a file"),
        ({"num_workers": 2, "inference_output_file": "out"}, "--num_workers shares out the lines"),
    ],
)
def test_what_is_read_twice_is_a_file(tmp_path, capsys, monkeypatch, flags, words, source):
    """Its second reading would find nothing, or never end."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    reference = {} if "num_workers" in flags else {"inference_ref_file": "in"}
    argv = command("model", inference_input_file=source, **reference, **flags)
    fails(argv, capsys, 2, words)


def test_a_folder_that_cannot_be_written_is_named_before_the_work(
    model, source, tmp_path, capsys, monkeypatch
):
    locked, text = tmp_path / "locked", tmp_path / "text"
    locked.mkdir()
    for side in ("src", "tgt"):
        text_files.write_lines(f"{text}.{side}", ["der hund"])
    writable = os.access  # everything is for an administrator, who may run this
    monkeypatch.setattr(
        os, "access", lambda path, mode: locked != Path(path) and writable(path, mode)
    )
    monkeypatch.setattr(api, "load", lambda *_, **__: pytest.fail("the model was loaded"))
    words = f"output=.*out: no permission to write in the folder {locked}"
    output = f"--output={locked / 'out'}"
    argv = [f"--model={model}", output, f"--train_prefix={text}"]
    fails(argv, capsys, 1, words, memorize.main)
    fails([f"--model={model}", output, f"--input={source}"], capsys, 1, words, inspection.main)
    flags = {"inference_input_file": source, "inference_output_file": locked / "out"}
    fails(command(model, **flags), capsys, 1, words.replace("output", "--inference_output_file", 1))


def test_a_device_needs_no_folder_that_can_be_written(monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    input_checks.require_folder(os.devnull, "output")
    input_checks.require_folder(None, "output")


def test_checkpoints_that_cannot_be_used(model, source, tmp_path, capsys):
    """Another model's, a damaged best one (falls back to the last), and none at all."""
    (tmp_path / "other").mkdir()
    other_model = write_model(tmp_path / "other", "rnnsearch")
    argv = command(model, inference_input_file=source, ckpt=other_model / "best_bleu")
    fails(argv, capsys, 1, "other/best_bleu is another model's: ")

    copy = tmp_path / "copy"
    for path in sorted(model.rglob("*")):
        target = copy / path.relative_to(model)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            target.write_bytes(path.read_bytes())
    weights = copy / "best_bleu" / "weights.npz"
    good = weights.read_bytes()
    weights.write_bytes(good[:-100] + bytes(100))
    argv = command(copy, inference_input_file=source, inference_output_file=tmp_path / "out")
    fails(argv, capsys, 1, "holds no intact checkpoint .*weights.npz is not as it was written")
    assert not (tmp_path / "out").exists()

    state = checkpoint.read_state(str(model / "best_bleu"))
    arrays = checkpoint.read_arrays(str(model / "best_bleu"))
    del state["sha256"]
    checkpoint.write(str(copy / "checkpoints" / "step-00000003"), arrays, None, state)
    from tfmann import api

    log = []
    assert api.load(str(copy), log=log.append).checkpoint.endswith("step-00000003")
    assert "falling back" in log[0]


def test_a_reader_that_goes_away_is_no_error_of_ours(model, source, tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    links = tmp_path / "links"
    flags = {"inference_input_file": source, "alignment_file": links}
    argv = command(model, infer_mode="greedy", **flags)
    done = run_in_a_process(argv, stdout=writing)
    os.close(writing)
    assert done.returncode == 1 and os.listdir(tmp_path) == ["in"]
    assert done.stderr.startswith(b"weights of ") and done.stderr.count(b"\n") == 1, done.stderr


@pytest.fixture
def default_handler(number):
    """Python's own handler of a signal, which `nohup` and background jobs of a shell turn off."""
    before = signal.getsignal(number)
    handler = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    signal.signal(number, handler)
    yield handler
    signal.signal(number, before)


@pytest.mark.parametrize(
    ("number", "status", "words"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "ended by SIGTERM"),
        (signal.SIGHUP, 129, "ended by SIGHUP"),
    ],
)
def test_an_interrupted_translation_leaves_the_old_file(
    model, tmp_path, monkeypatch, capsys, number, status, words, default_handler
):
    from tfmann import api

    def interrupted(self, lines, *arguments, **more):
        next(iter(lines))
        assert len(os.listdir(tmp_path)) == 3  # one is half written
        assert signal.getsignal(number) != signal.SIG_DFL, "it would end the tests"
        signal.raise_signal(number)

    monkeypatch.setattr(api.Model, "translate", interrupted)
    text_files.write_lines(tmp_path / "in", LINES)
    (tmp_path / "out").write_text("old\n")
    before = tree(tmp_path)
    argv = command(
        model, inference_input_file=tmp_path / "in", inference_output_file=tmp_path / "out"
    )
    assert nmt.main(argv) == status
    assert capsys.readouterr().err.endswith(f"tfmann: {words}\n")
    assert tree(tmp_path) == before and signal.getsignal(number) == default_handler

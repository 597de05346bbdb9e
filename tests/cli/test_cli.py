"""The command line: what it refuses, in which words and with which status."""

import json
import re
import subprocess
import sys

import pytest
from helpers.command_line import ROOT, command, fails, tree

from tfmann import config, nmt
from tfmann.utils import resources, run_folder


@pytest.mark.parametrize(
    "argv, status",
    [
        (["--help"], 0),
        (["--num_unit=3"], 2),
        (["--num_units=many"], 2),
        (["--mode=infer", "--out_dir=x"], 2),
        ([], 2),
    ],
)
def test_help_and_usage_errors_come_without_tensorflow(argv, status):
    program = (
        "import sys\nfrom tfmann import nmt\n"
        f"status = nmt.main({argv!r})\n"
        "late = {'tensorflow', 'numpy', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(99 if late else status)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, cwd=ROOT)
    assert done.returncode == status, done.stderr
    assert (done.stderr == b"") == (status == 0)
    assert done.stderr.count(b"\n") <= 1


SILENT = """
import sys
from tfmann import nmt
for line in sys.stdin.read().splitlines():
    print(nmt.main(line.split("\t")), flush=True)
sys.exit(99 if {"tensorflow", "numpy"} & set(sys.modules) else 0)
"""


def without_tensorflow(*commands):
    """Exit status and message of command lines that must be answered before TensorFlow is there."""
    lines = "\n".join("\t".join(argv) for argv in commands)
    done = subprocess.run(
        [sys.executable, "-c", SILENT], input=lines, capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    statuses, messages = done.stdout.split(), done.stderr.splitlines()
    assert len(statuses) == len(messages) == len(commands), done
    return list(zip(map(int, statuses), messages))


def test_missing_data_is_named_before_tensorflow_is_there(tmp_path):
    for name in ("a.src", "a.tgt", "b.src", "b.tgt0", "source_only.src"):
        (tmp_path / name).write_text("x\n")
    for name, lines in {"more.src": 2, "more.tgt": 1, "e.src": 0, "e.tgt": 0}.items():
        (tmp_path / name).write_text("x\n" * lines)
    good = {"train_prefix": "a", "dev_prefix": "a", "test_prefix": "b", "vocab_prefix": "a"}
    cases = [
        ({"train_prefix": "absent"}, "absent.src"),
        ({"train_prefix": "source_only"}, "source_only.tgt"),
        ({"train_prefix": "more"}, "more.src has 2"),
        ({"train_prefix": "e"}, "e.tgt are empty"),
        ({"init_checkpoint": "absent"}, "absent: there is no checkpoint"),
        ({"dev_prefix": "absent"}, "absent.tgt"),
        ({"dev_prefix": "source_only"}, "source_only.tgt"),
        ({"test_prefix": "absent"}, "absent.tgt"),
        ({"vocab_prefix": "absent"}, "absent.src"),
        ({"vocab_prefix": "source_only"}, "source_only.tgt"),
        ({"subword_option": "bpe", "subword_model": "absent"}, "absent"),
    ]
    commands = []
    for changes, _ in cases:
        prefixes = {**good, **changes}
        paths = {k: v if k == "subword_option" else tmp_path / v for k, v in prefixes.items()}
        commands.append(command(tmp_path / "out", src="src", tgt="tgt", **paths))
    for (_, words), (status, message) in zip(cases, without_tensorflow(*commands)):
        assert status == 1 and f"{tmp_path}/{words}" in message, (words, message)
    assert not (tmp_path / "out").exists()


def test_missing_files_of_a_trained_model_are_named_before_tensorflow_is_there(tmp_path):
    (tmp_path / "in").write_text("x\n")
    saved = config.HParams(
        cell="dnc", encoder_type="memory", src="src", tgt="tgt", dev_prefix=f"{tmp_path}/in"
    )
    config.save(saved, tmp_path / "hparams.json")
    source, absent, no_input = tmp_path / "in", tmp_path / "absent", {"inference_input_file": None}
    cases = [
        (1, "absent holds no trained model", {"out_dir": absent}),
        (1, "absent holds no trained model", {**no_input, "mode": "lexicon", "out_dir": absent}),
        (1, "absent holds no trained model", {**no_input, "mode": "shortlist", "out_dir": absent}),
        (1, "no such file: .*absent", {"inference_input_file": absent}),
        (1, "no such file: .*absent", {"inference_ref_file": absent}),
        (1, "neither .*in.tgt nor", {"mode": "eval", "inference_input_file": None}),
        (
            2,
            "nothing to translate",
            {"mode": "eval", "inference_input_file": None, "dev_prefix": ""},
        ),
        (2, "num_units=5", {"num_units": 5}),
        (2, "'dnc' has no alignments", {"coverage_penalty_weight": 1}),
        (2, "'dnc' has no alignments", {"alignment_file": absent}),
        (2, "'dnc' has no alignments", {"mode": "align", "inference_ref_file": source}),
    ]
    usual = {"out_dir": tmp_path, "inference_input_file": source}
    commands = [
        [f"--{key}={value}" for key, value in {**usual, **flags}.items() if value is not None]
        for _, _, flags in cases
    ]
    for (expected, words, _), (status, message) in zip(cases, without_tensorflow(*commands)):
        assert status == expected and re.search(words, message), (words, message)


def print_settings(capsys, *argv):
    assert nmt.main([*argv, "--print_hparams"]) == 0
    return json.loads(capsys.readouterr().out)


def test_all_settings_are_printed_and_nothing_is_done(tmp_path, capsys):
    file = config.HParams(**config.read_json(resources.settings_path("tiny/ntm.json")))
    flags = ["--hparams_path=tiny/ntm.json", "--dropout=0.4"]
    assert print_settings(capsys, *flags) == file.replace(dropout=0.4).as_dict()
    out = tmp_path / "out"
    assert print_settings(capsys, f"--out_dir={out}", *flags)["dropout"] == 0.4
    assert not out.exists()


def test_the_settings_of_prepared_text_are_printed(tmp_path, capsys):
    settings = {"src": "de", "tgt": "en", "train_prefix": "train", "tokenizer": "moses"}
    record = {"settings": settings, "inputs": {}, "splits": {}}
    record["recipe"] = {"source": "de", "target": "en"}
    (tmp_path / "data.json").write_text(json.dumps(record))
    printed = print_settings(capsys, f"--data={tmp_path}", "--tgt=fr")
    assert (printed["src"], printed["tgt"], printed["tokenizer"]) == ("de", "fr", "moses")
    assert printed["train_prefix"] == str(tmp_path / "train")
    assert nmt.main([f"--data={tmp_path}/none", "--print_hparams"]) == 2
    assert "none holds no data.json" in capsys.readouterr().err


def test_the_settings_of_a_begun_run_are_printed(tmp_path, capsys):
    saved = config.HParams(num_units=9)
    config.save(saved, tmp_path / "hparams.json")
    (tmp_path / run_folder.BEST).mkdir()
    settings = print_settings(capsys, f"--out_dir={tmp_path}", "--beam_width=3")
    assert settings == saved.replace(beam_width=3).as_dict()


def test_help_names_every_flag_with_its_default(capsys):
    assert nmt.main(["--help"]) == 0
    help_text = " ".join(capsys.readouterr().out.split())
    for name, field in config.FIELDS.items():
        assert f"--{name}: " in help_text and " ".join(field.help.split()) in help_text, name
    for name in ("out_dir", "hparams_path", "mode", "ckpt", "alignment_file"):
        assert f"--{name}: " in help_text
    assert "--num_units: Width U of every layer. (default: 32)" in help_text
    assert "--out_dir: Folder of the run: everything is written here. Also: --model" in help_text


@pytest.mark.parametrize(
    "argv, words",
    [
        (["--num_unit=3"], "num_unit.*num_units"),
        (["--outdir=x"], "outdir.*out_dir"),
        (["--beam_width"], "beam_width"),
        (["--num_units=3.5"], "num_units"),
        (["--noavg_ckpts=3"], "--noavg_ckpts=3 does not take an argument"),
        (["--nohelp="], "--nohelp= does not take an argument"),
        (["--num_units=0"], "num_units: 0 is below the least value 1"),
        (["--dropout=1.2"], "dropout: 1.2 is not below 1.0"),
        (["--dropout=nan"], "dropout: expected a finite number"),
        (["--share_vocab=perhaps"], "share_vocab"),
        (["--cell=lstm"], "cell.*lstm.*luong"),
        (["--mode=translate"], "mode.*translate.*infer"),
        (["file.json"], "unexpected argument 'file.json'"),
        ([], "--out_dir is not given"),
        (["--mode=train"], "--out_dir is not given"),
        (["--out_dir=x", "--mode=infer"], "needs --inference_input_file"),
        (["--out_dir=x", "--mode=score", "--inference_input_file=y"], "--inference_ref_file"),
        (["--out_dir=x", "--mode=align", "--inference_input_file=y"], "--inference_ref_file"),
        (
            ["--out_dir=x", "--inference_input_file=y", "--inference_output_file=z",
             "--alignment_file=z"],
            "--inference_output_file and --alignment_file are the same file, z",
        ),
        (
            ["--out_dir=x", "--inference_input_file=y", "--inference_output_file=z",
             "--alignment_file=./z"],
            "--inference_output_file and --alignment_file are the same file, ./z",
        ),
        (
            ["--out_dir=x", "--inference_input_file=y", "--inference_output_file=x/../y"],
            "--inference_output_file and --inference_input_file are the same file",
        ),
        (
            ["--out_dir=x", "--mode=score", "--inference_input_file=y", "--inference_ref_file=z",
             "--inference_output_file=z"],
            "--inference_output_file and --inference_ref_file are the same file",
        ),
        (
            ["--out_dir=x", "--inference_input_file=-", "--alignment_file=y",
             "--inference_document_file=y"],
            "--alignment_file and --inference_document_file are the same file",
        ),
        (["--out_dir=x", "--hparams_path=absent.json"], "cannot read the hparams file absent.json"),
        (["--out_dir=x", "--infer_mode=greedy", "--num_translations_per_input=2"], "needs infer_m"),
        (["--flagfile=absent"], "absent"),
        (["--flagfile=latin"], "--flagfile: 'utf-8' codec can't decode byte 0xff"),
        (["--out_dir=x", "--ckpt=y"], "--mode=train does not use --ckpt.*init_checkpoint"),
        (["--out_dir=x", "--mode=train", "--inference_input_file=y"], "--inference_input_file"),
        (["--out_dir=x", "--inference_output_file=y"], "train does not use --inference_output_f"),
        (["--out_dir=x", "--mode=train", "--inference_ref_file=y"], "does not use --inference_ref"),
        (["--out_dir=x", "--alignment_file=y"], "--mode=train does not use --alignment_file"),
        (
            ["--out_dir=x", "--mode=align", "--inference_input_file=y", "--inference_ref_file=z",
             "--alignment_file=a"],
            "--mode=align does not use --alignment_file: .*--inference_output_file",
        ),
        (
            ["--out_dir=x", "--mode=eval", "--alignment_file=a"],
            "--mode=eval does not use --alignment_file",
        ),
        (["--out_dir=x", "--mode=eval", "--inference_ref_file=y"], "needs --inference_input_file"),
        (["--out_dir=x", "--mode=eval", "--inference_input_file=y"], "needs --inference_ref_file"),
        (
            ["--out_dir=x", "--mode=score", "--inference_input_file=-", "--inference_ref_file=y"],
            "from two files",
        ),
        (
            ["--out_dir=x", "--mode=score", "--inference_input_file=a", "--inference_ref_file=y",
             "--inference_contrast_file=z", "--word_scores"],
            "--word_scores is not for --inference_contrast_file",
        ),
        (["--out_dir=x", "--word_scores"], "--mode=train does not use --word_scores"),
        (["--out_dir=x", "--cell=dnc", "--coverage_penalty_weight=0.2"], "'dnc'.*no alignments"),
    ],
)  # fmt: skip
def test_usage_errors(argv, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin").write_bytes(b"--src=\xff\n")
    before = tree(tmp_path)
    fails(argv, capsys, 2, words)
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    "content, words",
    [
        ('{"num_unit": 3}', "unknown key 'num_unit'; did you mean 'num_units'"),
        ('{"num_units": "3"}', "num_units: expected int, got '3'"),
        ('{"dropout": 3}', "dropout: 3.0 is not below"),
        ("[1]", "expected one flat JSON object"),
        ("{", "is not JSON"),
        ('{"encoder_type": "bi", "num_layers": 3}', "give an even number"),
    ],
)
def test_wrong_settings_files(content, words, capsys, tmp_path):
    path = tmp_path / "h.json"
    path.write_text(content)
    before = tree(tmp_path)
    fails(command(tmp_path / "out", hparams_path=path), capsys, 2, rf"h\.json.*{words}")
    assert tree(tmp_path) == before

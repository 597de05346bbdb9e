"""Names of flags that commands share, and paths in the home folder."""

import pytest

from tfmann import nmt
from tfmann.cli import translate
from tfmann.errors import UsageError
from tfmann.utils.arguments import ArgumentParser


def test_every_mode_takes_the_names_of_other_commands():
    values, explicit = nmt.parse(
        ["--mode=score", "--model=run", "--input", "in", "--reference=ref", "--output=out",
         "--documents=docs", "--n_best=3"]
    )  # fmt: skip
    assert (values.out_dir, values.inference_input_file, values.inference_ref_file) == (
        "run",
        "in",
        "ref",
    )
    assert (values.inference_output_file, values.inference_document_file) == ("out", "docs")
    assert explicit == {"num_translations_per_input": 3}
    with pytest.raises(UsageError, match="models"):
        nmt.parse(["--models=run"])


def test_translate_takes_the_names_of_the_modes():
    parser = translate._parser()
    args = parser.parse_args(
        ["--out_dir=run", "--inference_input_file=in", "--inference_ref_file=ref",
         "--num_translations_per_input=2"]
    )  # fmt: skip
    assert (args.model, args.input, args.reference, args.n_best) == ("run", "in", "ref", 2)
    assert parser.parse_args(["--model=run"]).n_best == 1
    assert "inference_input_file" not in parser.format_help()


def test_a_tilde_after_a_flag_is_the_home_folder(monkeypatch):
    """Shells expand it only at the beginning of a word."""
    monkeypatch.setenv("HOME", "/home/me")
    values, _ = nmt.parse(["--out_dir=~/runs/a", "--train_prefix=~/a,~/b", "--test_prefix=a~/b"])
    assert values.out_dir == "/home/me/runs/a"
    assert values.train_prefix == "/home/me/a,/home/me/b" and values.test_prefix == "a~/b"
    parser = ArgumentParser()
    parser.add_argument("--output")
    assert parser.parse_args(["--output=~/corpora"]).output == "/home/me/corpora"

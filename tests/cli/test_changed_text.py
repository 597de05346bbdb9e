"""Commands of a trained model whose text is another now, such as that of another folder."""

import json
import shutil

import pytest
from helpers.shipped_runs import FIRST, training_command

from tfmann import nmt
from tfmann.cli import memorize

pytestmark = pytest.mark.usefixtures("untraced_module")

RUN = {"num_train_steps": 1, "tgt_max_len_infer": 3, "avg_ckpts": False}


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    """A run, and its text, of which the first target lines have changed since."""
    root = tmp_path_factory.mktemp("changed")
    text, out = root / "text", root / "out"
    shutil.copytree(data, text)
    assert nmt.main(training_command(FIRST, text, out, **RUN)) == 0
    for name in ("train", "dev"):
        path = text / f"{name}.tgt"
        lines = path.read_text("utf-8").splitlines()
        path.write_text("\n".join(lines[1:] + lines[:1]) + "\n", encoding="utf-8")
    return text, out


def test_what_learns_from_other_text_under_the_same_name_refuses(run, capsys):
    text, out = run
    saved = (out / "hparams.json").read_bytes()
    for argv, name in (
        (["--mode=tune"], "dev"),
        (["--mode=shortlist"], "train"),
        (["--mode=lexicon"], "train"),
    ):
        assert nmt.main([*argv, f"--out_dir={out}"]) == 1
        message = capsys.readouterr().err
        assert f"{text / name}.tgt ({name}_prefix) is not what the run in {out} read" in message
    assert memorize.main([f"--model={out}", "--updates=1"]) == 1
    assert "is not what the run" in capsys.readouterr().err
    assert (out / "hparams.json").read_bytes() == saved
    assert not (out / "shortlist.txt").exists() and not (out / "lexicon.txt").exists()


def test_a_flag_may_name_other_text(run, capsys):
    text, out = run
    assert (
        nmt.main(["--mode=shortlist", f"--out_dir={out}", f"--train_prefix={text / 'train'}"]) == 0
    )
    assert "shortlist.txt" in capsys.readouterr().out


def test_an_evaluation_says_that_its_text_is_another(run, capsys):
    text, out = run
    assert nmt.main(["--mode=eval", f"--out_dir={out}"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["scores"].keys() == {"dev", "test"}
    assert f"{text / 'dev'}.tgt (dev_prefix) is not what the run read" in printed.err
    assert "test_prefix" not in printed.err

"""The command `tfmann`: help, versions, misspelled names, and the commands' descriptions."""

import importlib
import json
import re
import subprocess
import sys

import pytest
from helpers.command_line import LINES, ROOT, fails, run_in_a_process, write_model, write_source

import tfmann
from tfmann import api, config, nmt
from tfmann.cli import demo, main, translate, validation


def run(capsys, *argv):
    """The exit status of a command line, what it prints and what it complains of."""
    capsys.readouterr()
    status = main.main(argv)
    return (status, *capsys.readouterr())


@pytest.mark.parametrize(
    "argv", [[], ["-h"], ["--help"], ["help"], ["help", "help"], ["help", "-h"]]
)
def test_help_lists_every_command_with_examples(argv, capsys):
    status, out, err = run(capsys, *argv)
    assert (status, err) == (0, "")
    for name in (*main.COMMANDS, "version", "help"):
        assert re.search(rf"^  {name} +\w", out, re.MULTILINE), name
    assert max(map(len, out.splitlines())) <= 100
    for name in re.findall(r"\btfmann ([a-z]+) ", out.partition("examples:")[2]):
        assert name in main.COMMANDS
    assert re.search(r"train --data=corpora/mine .*\n? +--nobleu_lowercase", out)


def test_the_example_of_prepare_trains_as_the_command_that_it_prints(capsys):
    with pytest.raises(SystemExit):
        main.main(["prepare", "-h"])
    out = capsys.readouterr().out
    assert re.search(r"train --data=corpora/de_en .*\n +--nobleu_lowercase", out)


def test_versions_are_printed(capsys):
    assert run(capsys, "--version") == (0, f"tfmann {tfmann.__version__}\n", "")
    status, out, _ = run(capsys, "version")
    assert status == 0 and out.startswith(f"tfmann {tfmann.__version__} (")
    assert "  tensorflow 2." in out
    assert run(capsys, "version", "-h") == (0, out, "")
    status, out, err = run(capsys, "version", "--json")
    assert (status, out) == (2, "") and "`tfmann version` takes no arguments" in err
    assert nmt.main(["--version"]) == 0
    assert capsys.readouterr().out == f"tfmann {tfmann.__version__}\n"


def test_help_is_about_one_command(capsys):
    status, out, err = run(capsys, "help", "train", "serve")
    assert (status, out) == (2, "") and "leave out 'serve'" in err


HEAVY = {"tensorflow", "numpy", "absl", "matplotlib", "sacrebleu", "tfmann.config"}


@pytest.mark.parametrize("argv", [[], ["-h"], ["--version"], ["trian"]])
def test_what_answers_at_once_loads_nothing(argv):
    script = (
        "import sys; from tfmann.cli import main as cli; cli.main(sys.argv[1:]);"
        f"print('loaded:', *sorted({HEAVY} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *argv], capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout.splitlines()[-1] == "loaded:", done.stdout


def test_no_help_loads_tensorflow():
    script = (
        "import sys; from tfmann.cli import main as cli\n"
        "for name in cli.COMMANDS:\n"
        "    try: cli.main([name, '-h'])\n"
        "    except SystemExit as end: assert not end.code, name\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("usage: tfmann ") + done.stdout.count("\nexamples:\n") >= len(
        main.COMMANDS
    )


@pytest.mark.parametrize(
    "argv, words",
    [
        (["trian"], "no command 'trian'; did you mean 'train'"),
        (["Translate"], "did you mean 'translate'"),
        (["infer"], "did you mean 'translate'"),
        (["eval"], "did you mean 'evaluate'"),
        (["help", "reprodcue"], "did you mean 'reproduce'"),
        (["xyzzy"], "no command 'xyzzy'; `tfmann -h` lists them"),
        (["--out_dir=x"], "expected a command before --out_dir=x"),
        (["train", "--mode=eval"], "`tfmann train` is --mode=train: leave out --mode"),
        (["score", "--mode", "eval"], "`tfmann score` is --mode=score"),
        (["train"], "--out_dir is not given.*--help has examples"),
        (["translate", "--model=x", "--output=y"], "--output applies only to files: give --input"),
        (["translate", "--model=x", "--input=y", "--alignments"], "shown line by line"),
        (["fetch", "tvsubs.json", "--directory=x"], "no such file.*did you mean tvsub.json"),
        (["settings", "tiny/luongg.json"], "no such file.*did you mean tiny/luong.json"),
    ],
)
def test_what_is_refused(argv, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fails(argv, capsys, 2, words, main.main)
    assert not list(tmp_path.iterdir())


def test_a_folder_may_be_called_mode(capsys):
    assert main.main(["train", "--out_dir", "mode", "--print_hparams"]) == 0
    assert '"cell": "luong"' in capsys.readouterr().out


def test_every_mode_is_a_command():
    """But `infer`, for which translating a file has flags of its own."""
    modes = {c.first[0][len("--mode=") :] for c in main.COMMANDS.values() if c.module == "nmt"}
    assert modes == set(validation.MODES) - {"infer"}
    for command in main.COMMANDS.values():
        assert callable(importlib.import_module(f"tfmann.{command.module}").main)


@pytest.mark.parametrize("mode", validation.MODES)
def test_the_help_of_a_mode_has_the_flags_that_it_uses(mode, capsys):
    assert nmt.main([f"--mode={mode}", "-h"]) == 0
    help_text = capsys.readouterr().out
    for name, (modes, _) in validation._USED.items():
        assert (f"--{name}: " in help_text) == (mode in modes), name
    assert ("--learning_rate: " in help_text) == (mode == "train")


def test_settings_are_listed_and_shown(capsys):
    status, out, _ = run(capsys, "settings", "cpu/multi30k")
    assert status == 0 and "cpu/multi30k/de_en_luong.json" in out.splitlines()
    assert all(line.startswith("cpu/multi30k/") for line in out.splitlines())
    path = ROOT / "hparams" / "tiny" / "luong.json"
    status, out, _ = run(capsys, "settings", "tiny/luong.json")
    assert status == 0 and json.loads(out) == config.make({}, str(path)).as_dict()
    assert "base.json" not in run(capsys, "settings")[1]


def test_a_file_is_translated_as_by_tfmann_nmt(untraced, tmp_path, capsysbinary):
    (tmp_path / "model").mkdir()
    model = write_model(tmp_path / "model", tgt_max_len_infer=4)
    source = write_source(tmp_path / "in.src")
    expected = [n_best[0].text for n_best in api.load(str(model)).translate(LINES)]
    argv = ["translate", f"--model={model}", f"--input={source}"]
    assert main.main([*argv, f"--output={tmp_path / 'out'}"]) == 0
    assert (tmp_path / "out").read_text(encoding="utf-8").splitlines() == expected
    capsysbinary.readouterr()
    assert main.main([*argv, "--n_best=2", "--beam_width=2"]) == 0
    lines = capsysbinary.readouterr().out.decode().splitlines()
    assert [line.split(" ||| ")[0] for line in lines][:2] == ["0", "0"]
    n_best_lists = api.load(str(model), num_translations_per_input=2, beam_width=2).translate(LINES)
    assert [line.split(" ||| ")[1] for line in lines] == [
        hypothesis.text for n in n_best_lists for hypothesis in n
    ]


def test_a_module_is_the_same_command():
    done = subprocess.run(
        [sys.executable, "-m", "tfmann", "--version"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.stdout == f"tfmann {tfmann.__version__}\n"
    assert run_in_a_process(["--version"], stdout=subprocess.PIPE).stdout == done.stdout.encode()


def test_the_demo_names_commands_that_are_there(capsys, monkeypatch, tmp_path):
    for name in ("tfmann", "tensorboard"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.chdir(tmp_path.parent)
    demo._print_next_steps("runs/demo", 99.0)
    out = capsys.readouterr().out
    assert f"{tmp_path.name}/tfmann translate --model=runs/demo/model" in out
    assert "docs/" not in out  # which do not come with the package
    assert set(re.findall(r"/tfmann ([a-z]+)", out)) <= set(main.COMMANDS)
    monkeypatch.setenv("PATH", str(tmp_path))
    demo._print_next_steps("runs/demo", 99.0)
    assert "\n  tensorboard --logdir runs/demo\n" in capsys.readouterr().out


def test_the_settings_of_a_search_reach_it():
    argv = ["--model=m", "--input=i", "--beam_width=4", "--replace_unk", "--documents=d"]
    flags = translate._file_command(translate._parser().parse_args(argv))
    values, explicit = nmt.parse(flags)
    assert (values.out_dir, values.inference_input_file) == ("m", "i")
    assert (values.mode, values.inference_document_file) == ("infer", "d")
    assert explicit == {"beam_width": 4, "replace_unk": True, "num_translations_per_input": 1}

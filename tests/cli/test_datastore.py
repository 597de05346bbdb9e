"""`tfmann datastore`, and what translates with its folder."""

import re

import numpy as np
import pytest
from helpers import small
from helpers.command_line import fails, write_model

from tfmann import api
from tfmann.cli import main
from tfmann.data import text_files
from tfmann.data.datastore_record import read_record
from tfmann.errors import UserError

SOURCE = ["der hund und die katze", "", "größe một chó", "katze sieht der hund"]
TARGET = ["DIE KATZE UND DER", "HUND", "CHÓ MỘT 。 MỘT", "HUND DER KATZE"]
LINES = ["der hund und die katze", "chó sieht", "unbekannt", "größe một chó"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a model, a memory of two files and a text to translate."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "model").mkdir()
    write_model(folder / "model", "rnnsearch")
    for name, lines in (("tm.src", SOURCE), ("tm.tgt", TARGET), ("in", LINES)):
        text_files.write_lines(folder / name, lines)
    return folder


def files_of(place):
    return f"--translation_memory={place / 'tm.src'},{place / 'tm.tgt'}"


def translate(place, memory, *flags):
    out = place / "out"
    argv = ["translate", f"--model={place / 'model'}", f"--input={place / 'in'}", f"--output={out}"]
    assert main.main([*argv, memory, *flags]) == 0
    return list(text_files.iter_lines(out))


def datastore(place, *flags):
    return main.main(["datastore", f"--model={place / 'model'}", files_of(place), *flags])


def test_files_and_folders_with_and_without_keys_translate_alike(place, capsys):
    assert datastore(place, f"--output={place / 'index'}") == 0
    assert datastore(place, f"--output={place / 'keys'}", "--keys") == 0
    notes = capsys.readouterr().err
    assert "3 pairs, 1 with an empty side left out, 14 entries, with keys" in notes
    expected = translate(place, files_of(place))
    assert expected[0] == TARGET[0] and expected[3] == TARGET[2]
    assert translate(place, "--translation_memory=") != expected
    for name in ("index", "keys"):
        assert translate(place, f"--translation_memory={place / name}") == expected
        greedy = translate(place, f"--translation_memory={place / name}", "--infer_mode=greedy")
        assert greedy[0] == TARGET[0]
    model = api.load(str(place / "model"))
    keys = np.load(place / "keys" / "keys.npy")
    assert keys.shape == (14, model.translator.model.readout_width) and keys.dtype == np.float16
    assert "weights" not in read_record(str(place / "index"))
    with_search = model.with_search(translation_memory=str(place / "keys"))
    assert [n_best[0].text for n_best in with_search.translate(LINES)] == expected
    wider = with_search.with_search(beam_width=5)
    assert wider.translator.memory is with_search.translator.memory
    other = with_search.with_search(translation_memory=files_of(place).partition("=")[2])
    assert other.translator.memory is not with_search.translator.memory


def test_keys_of_other_weights_are_refused(place, tmp_path):
    assert datastore(place, f"--output={place / 'keys'}", "--keys") == 0
    (tmp_path / "other").mkdir()
    other = write_model(
        tmp_path / "other", "rnnsearch", random_seed=small.hparams().random_seed + 1
    )
    with pytest.raises(UserError, match="are readouts of other weights than those of this model"):
        api.load(str(other), translation_memory=str(place / "keys"))


def test_distances_of_a_development_set_are_printed(place, capsys):
    dev = f"--dev={place / 'tm.src'},{place / 'tm.tgt'}"
    assert datastore(place, dev, "--pairs=2") == 0
    shown = capsys.readouterr().out
    assert re.search(r"positions 16, without an entry 2\n", shown)  # those of the blank line
    assert len(re.findall(r"^  \S+(?:  \S+){4}$", shown, re.MULTILINE)) == 1
    assert len(re.findall(r"^  \S+(?:  \S+){3}$", shown, re.MULTILINE)) == 1


@pytest.mark.parametrize(
    "flags, status, message",
    [
        ([], 2, "nothing to do: give --output, the folder to write, or --dev"),
        (["--dev=a,b", "--keys"], 2, "--keys are written into a folder: give --output"),
        (["--output=x", "--pairs=2"], 2, "--pairs is of no use without --dev"),
        (["--dev=a"], 2, "--dev=a: expected two files with a comma between them"),
        (["--dev=absent,b"], 1, "no such file: absent"),
        (["--output={place}"], 1, "holds other files than a datastore: give another --output"),
        (["--output={place}/tm.src"], 2, "the same file"),
        (["--translation_memory=a", "--output=x"], 2, "expected two files with a comma between"),
        (["--translation_memory=a,b", "--output=x"], 1, "no such file: a"),
        (["--model=absent", "--output=x"], 1, "absent holds no trained model"),
    ],
)
def test_bad_commands_are_refused(flags, status, message, place, capsys):
    flags = [flag.replace("{place}", str(place)) for flag in flags]
    argv = ["datastore", f"--model={place / 'model'}", files_of(place), *flags]
    fails(argv, capsys, status, message, main=main.main)


@pytest.mark.parametrize(
    "value, status, message",
    [
        ("a", 2, "expected two files with a comma between them, SOURCE,TARGET, or a folder"),
        ("absent,{place}/in", 1, "no such file: absent"),
        ("{place}/in,{place}/one", 1, "unequal line counts"),
        ("{place}/model", 1, "model is no datastore"),
    ],
)
def test_bad_memories_are_refused_before_the_model_is_loaded(value, status, message, place, capsys):
    text_files.write_lines(place / "one", ["HUND"])
    value = value.replace("{place}", str(place))
    argv = ["translate", f"--model={place / 'model'}", f"--translation_memory={value}"]
    fails([*argv, f"--input={place / 'in'}"], capsys, status, message, main=main.main)


def test_a_memory_is_not_overwritten(place, capsys):
    before = (place / "tm.tgt").read_bytes()
    argv = ["translate", f"--model={place / 'model'}", files_of(place), f"--input={place / 'in'}"]
    message = "--inference_output_file and the translation memory .*tm.tgt are the same file"
    fails([*argv, f"--output={place / 'tm.tgt'}"], capsys, 2, message, main=main.main)
    assert (place / "tm.tgt").read_bytes() == before


def test_an_ensemble_refuses_a_memory(place):
    folder = str(place / "model")
    memory = f"{place / 'tm.src'},{place / 'tm.tgt'}"
    with pytest.raises(UserError, match="its keys are readouts of one model, and an ensemble has"):
        api.load(folder, ensemble=[folder], translation_memory=memory)

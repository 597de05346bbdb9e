"""`tfmann datastore`, and what translates with its folder."""

import json
import re

import numpy as np
import pytest
from helpers import small_models
from helpers.command_line import fails, write_model

from tfmann import api
from tfmann.cli import main
from tfmann.data import text_files
from tfmann.data.datastore_record import read_record
from tfmann.errors import UserError
from tfmann.training import meta_network
from tfmann.utils.files import file_digest

SOURCE = ["der hund und die katze", "", "größe một chó", "katze sieht der hund"]
TARGET = ["DIE KATZE UND DER", "HUND", "CHÓ MỘT 。 MỘT", "HUND DER KATZE"]
LINES = ["der hund und die katze", "chó sieht", "unbekannt", "größe một chó"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a model, a memory of two files and a text to translate."""
    root = tmp_path_factory.mktemp("place")
    (root / "model").mkdir()
    write_model(root / "model", "rnnsearch")
    for name, lines in (("tm.src", SOURCE), ("tm.tgt", TARGET), ("in", LINES)):
        text_files.write_lines(root / name, lines)
    return root


def files_of(folder):
    return f"--translation_memory={folder / 'tm.src'},{folder / 'tm.tgt'}"


def translate(folder, memory, *flags):
    out = folder / "out"
    argv = [
        "translate",
        f"--model={folder / 'model'}",
        f"--input={folder / 'in'}",
        f"--output={out}",
    ]
    assert main.main([*argv, memory, *flags]) == 0
    return list(text_files.iter_lines(out))


def datastore(folder, *flags):
    return main.main(["datastore", f"--model={folder / 'model'}", files_of(folder), *flags])


@pytest.mark.thorough
def test_files_and_folders_with_and_without_keys_translate_alike(folder, capsys):
    assert datastore(folder, f"--output={folder / 'index'}") == 0
    assert datastore(folder, f"--output={folder / 'keys'}", "--keys") == 0
    notes = capsys.readouterr().err
    assert "3 pairs, 1 with an empty side left out, 14 entries, with keys" in notes
    expected = translate(folder, files_of(folder))
    assert expected[0] == TARGET[0] and expected[3] == TARGET[2]
    assert translate(folder, "--translation_memory=") != expected
    for name in ("index", "keys"):
        assert translate(folder, f"--translation_memory={folder / name}") == expected
        greedy = translate(folder, f"--translation_memory={folder / name}", "--infer_mode=greedy")
        assert greedy[0] == TARGET[0]
    model = api.load(str(folder / "model"))
    keys = np.load(folder / "keys" / "keys.npy")
    assert keys.shape == (14, model.translator.model.readout_width) and keys.dtype == np.float16
    assert "weights" not in read_record(str(folder / "index"))
    with_search = model.with_search(translation_memory=str(folder / "keys"))
    assert [n_best[0].text for n_best in with_search.translate(LINES)] == expected
    wider = with_search.with_search(beam_width=5)
    assert wider.translator.memory is with_search.translator.memory
    with_files = with_search.with_search(translation_memory=files_of(folder).partition("=")[2])
    assert with_files.translator.memory is not with_search.translator.memory


def test_keys_of_other_weights_are_refused(folder, tmp_path):
    assert datastore(folder, f"--output={folder / 'keys'}", "--keys") == 0
    (tmp_path / "other").mkdir()
    other_model = write_model(
        tmp_path / "other", "rnnsearch", random_seed=small_models.hparams().random_seed + 1
    )
    with pytest.raises(UserError, match="are readouts of other weights than those of this model"):
        api.load(str(other_model), translation_memory=str(folder / "keys"))


def test_distances_of_a_development_set_are_printed(folder, tmp_path, capsys):
    text_files.write_lines(tmp_path / "dev.src", ["der hund und die größe", ""])
    text_files.write_lines(tmp_path / "dev.tgt", ["DIE KATZE UND HUND", "HUND"])
    dev = f"--dev={tmp_path / 'dev.src'},{tmp_path / 'dev.tgt'}"
    assert datastore(folder, dev, "--pairs=2") == 0
    stdout = capsys.readouterr().out
    assert re.search(r"positions 7, without an entry 2\n", stdout)  # those of the blank line
    [quantiles] = re.findall(r"^  \S+(?:  \S+){4}$", stdout, re.MULTILINE)
    [taus] = re.findall(r"^  \S+(?:  \S+){3}$", stdout, re.MULTILINE)
    assert 0 < float(quantiles.split()[2]) == float(taus.split()[1])


@pytest.mark.parametrize(
    "saved",
    [{"translation_memory": "absent,absent"}, {"neural_cache_size": 3}, {"lexical_memory": "x"}],
)
def test_memories_that_a_run_has_saved_are_of_no_concern(saved, folder, tmp_path):
    """They may be gone, be the one that is made anew, or go with no translation memory."""
    (tmp_path / "model").mkdir()
    write_model(tmp_path / "model", "rnnsearch", **saved)
    argv = ["datastore", f"--model={tmp_path / 'model'}", files_of(folder)]
    dev = f"--dev={folder / 'tm.src'},{folder / 'tm.tgt'}"
    assert main.main([*argv, f"--output={tmp_path / 'keys'}", "--keys", dev]) == 0
    assert "weights" in read_record(str(tmp_path / "keys"))


def test_a_development_set_of_the_memory_s_own_pairs_gives_no_temperature(folder, capsys):
    assert datastore(folder, f"--dev={folder / 'tm.src'},{folder / 'tm.tgt'}") == 0
    assert "to try" not in (stdout := capsys.readouterr().out)
    assert "most of these pairs are in the memory: give others" in stdout


def test_a_network_is_trained_and_used(untraced, folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(meta_network, "UPDATES", 3)
    sides = [[line for line in side if line] * 8 for side in (SOURCE[:1] + SOURCE[2:], TARGET)]
    for name, lines in zip(("dev.src", "dev.tgt"), sides):
        text_files.write_lines(tmp_path / name, lines[:24])
    dev = f"--dev={tmp_path / 'dev.src'},{tmp_path / 'dev.tgt'}"
    network = tmp_path / "network.json"
    assert datastore(folder, dev, f"--adapt={network}", "--neighbors=4", "--pairs=3") == 0
    notes = capsys.readouterr().err
    assert notes.count("loss of words held back") == 5
    *_, flags = notes.splitlines()[-1].partition("translate with ")
    record = json.loads(network.read_text())
    assert record["settings"]["translation_memory_neighbors"] == 4
    assert record["dev"][str(tmp_path / "dev.src")] == file_digest(tmp_path / "dev.src")
    assert set(record["memory"]) == {str(folder / "tm.src"), str(folder / "tm.tgt")}
    memory, *others = flags.split()
    assert translate(folder, memory, *others) != translate(folder, memory, *others[:3])
    argv = ["translate", f"--model={folder / 'model'}", f"--input={folder / 'in'}", memory]
    fails([*argv, others[3]], capsys, 1, "was trained with other settings", main=main.main)
    message = "--output and --translation_memory_adaptive are the same file"
    fails([*argv, *others, f"--output={network}"], capsys, 2, message, main=main.main)


@pytest.mark.parametrize("loss, said", [(2.0, True), (1.0, False)])
def test_a_network_without_a_gain_is_said_to_have_none(
    loss, said, folder, tmp_path, capsys, monkeypatch
):
    positions = meta_network.Examples(*[np.full([20, 2], 9.0, np.float32)] * 4)
    monkeypatch.setattr(meta_network, "examples", lambda *_: (positions, [[k] for k in range(20)]))
    layer = np.zeros([1], np.float32)
    network = meta_network.MetaNetwork(*[layer] * len(meta_network.MetaNetwork._fields))
    trained = meta_network.TrainedNetwork(network, 1, loss, 2.0, np.array([0.5, 0.5]))
    monkeypatch.setattr(meta_network, "train", lambda *_, **__: trained)
    dev = f"--dev={folder / 'tm.src'},{folder / 'tm.tgt'}"
    flags = f"--adapt={tmp_path / 'network'}", "--neighbors=1", "--tau=5"
    assert datastore(folder, dev, *flags) == 0
    assert ("the network gains nothing over the model alone" in capsys.readouterr().err) == said


def test_a_development_set_that_is_like_nothing_in_the_memory_is_refused(folder, tmp_path, capsys):
    text_files.write_lines(tmp_path / "dev", ["unbekannt"] * 30)
    flags = f"--dev={tmp_path / 'dev'},{tmp_path / 'dev'}", f"--adapt={tmp_path / 'network'}"
    assert datastore(folder, *flags) == 1
    assert "dev: 0 sentences have a similar pair in the memory" in capsys.readouterr().err
    assert not (tmp_path / "network").exists()


def test_a_development_set_that_is_part_of_the_memory_is_refused(
    folder, tmp_path, capsys, monkeypatch
):
    found = np.where(np.arange(60) % 3, 1e-5, 20.0).astype(np.float32)[:, None]
    zeros = np.zeros([60], np.int32)
    positions = meta_network.Examples(found, zeros[:, None], zeros, found[:, 0])
    sentences = list(np.arange(60).reshape(20, 3))
    monkeypatch.setattr(meta_network, "examples", lambda *_: (positions, sentences))
    monkeypatch.setattr(meta_network, "train", lambda *_, **__: pytest.fail("it was trained"))
    dev = f"--dev={folder / 'tm.src'},{folder / 'tm.tgt'}"
    assert datastore(folder, dev, f"--adapt={tmp_path / 'network'}") == 1
    assert "tm.src: most of these pairs are in the memory" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags, status, message",
    [
        ([], 2, "nothing to do: give --output, the folder to write, or --dev"),
        (["--dev=a,b", "--keys"], 2, "--keys are written into a folder: give --output"),
        (["--output=x", "--pairs=2"], 2, "--pairs has no effect without --dev"),
        (["--dev=a"], 2, "--dev=a: expected two files with a comma between them"),
        (["--dev=absent,b"], 1, "no such file: absent"),
        (["--output={folder}"], 1, "holds other files than a datastore"),
        (["--output={folder}/tm.src"], 2, "the same file"),
        (["--translation_memory=a", "--output=x"], 2, "expected two files with a comma between"),
        (["--translation_memory=a,b", "--output=x"], 1, "no such file: a"),
        (["--model=absent", "--output=x"], 1, "absent holds no trained model"),
        (["--adapt=x", "--output=y"], 2, "--adapt trains on a development set: give --dev"),
        (["--output=x", "--tau=2"], 2, "--neighbors and --tau have no effect without --adapt"),
        (["--dev=a,b", "--adapt=x", "--neighbors=6"], 2, "--neighbors=6: expected a power of 2"),
        (["--dev=a,b", "--adapt=x", "--neighbors=0"], 2, "--neighbors=0: expected a power of 2"),
        (["--dev=a,b", "--adapt=x", "--neighbors=512"], 2, "expected a power of 2 of at most 256"),
        (["--output=x", "--ckpt=y"], 2, "--ckpt has no effect without --keys or --dev"),
        (["--output={folder}/s", "--dev=a,b", "--adapt={folder}/s/x"], 1, "there is no folder"),
        (
            ["--translation_memory={folder}", "--dev=a,b", "--adapt={folder}/x"],
            2,
            "--adapt=.* is the folder of a datastore, which holds nothing else",
        ),
        (["--dev=a,b", "--adapt=x", "--tau=nan"], 2, "--tau=nan: expected a number of at least"),
        (["--dev=a,b", "--adapt=x", "--tau=inf"], 2, "--tau=inf: expected a number of at least"),
        (["--translation_memory={folder}", "--output=x"], 2, "is a folder: give the two text fi"),
        (["--dev={folder}/in,b", "--adapt={folder}/in"], 2, "the same file"),
        (["--dev=a,b", "--adapt={folder}/model/hparams.json"], 2, "the model's hparams.json are"),
        (["--dev={folder}/in,{folder}/in", "--adapt=none/x"], 1, "there is no folder .*none"),
        (["--dev={folder}/in,{folder}/in", "--adapt={folder}"], 1, "--adapt=.* is a folder; exp"),
        (["--dev=absent,b", "--adapt=x"], 1, "no such file: absent"),
        (["--translation_memory=absent", "--dev=a,b", "--adapt=x"], 2, "expected two files with"),
    ],
)
def test_bad_commands_are_refused(flags, status, message, folder, capsys):
    flags = [flag.replace("{folder}", str(folder)) for flag in flags]
    argv = ["datastore", f"--model={folder / 'model'}", files_of(folder), *flags]
    fails(argv, capsys, status, message, main=main.main)


@pytest.mark.parametrize(
    "value, status, message",
    [
        ("a", 2, "expected two files with a comma between them, SOURCE,TARGET, or a folder"),
        ("absent,{folder}/in", 1, "no such file: absent"),
        ("{folder}/in,{folder}/one", 1, "unequal line counts"),
        ("{folder}/model", 1, "model is no datastore"),
    ],
)
def test_bad_memories_are_refused_before_the_model_is_loaded(
    value, status, message, folder, capsys
):
    text_files.write_lines(folder / "one", ["HUND"])
    value = value.replace("{folder}", str(folder))
    argv = ["translate", f"--model={folder / 'model'}", f"--translation_memory={value}"]
    fails([*argv, f"--input={folder / 'in'}"], capsys, status, message, main=main.main)


def test_a_memory_is_not_overwritten(folder, capsys):
    before = (folder / "tm.tgt").read_bytes()
    argv = [
        "translate",
        f"--model={folder / 'model'}",
        files_of(folder),
        f"--input={folder / 'in'}",
    ]
    message = "--output and the translation memory .*tm.tgt are the same file"
    fails([*argv, f"--output={folder / 'tm.tgt'}"], capsys, 2, message, main=main.main)
    assert (folder / "tm.tgt").read_bytes() == before
    store = folder / "store"
    assert datastore(folder, f"--output={store}") == 0
    argv[2] = f"--translation_memory={store}"
    for name in sorted(path.name for path in store.iterdir()):
        message = f"--output and the memory .*{name} are the same file"
        fails([*argv, f"--output={store / name}"], capsys, 2, message, main=main.main)


def test_an_ensemble_refuses_a_memory(folder):
    model = str(folder / "model")
    memory = f"{folder / 'tm.src'},{folder / 'tm.tgt'}"
    with pytest.raises(UserError, match="its keys are readouts of one model, and an ensemble has"):
        api.load(model, ensemble=[model], translation_memory=memory)

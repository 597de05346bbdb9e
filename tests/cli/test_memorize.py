"""`tfmann memorize`, and what translates with its file."""

import re
import struct

import numpy as np
import pytest
from helpers.command_line import fails, write_model

from tfmann import api, config
from tfmann.cli import main
from tfmann.cli import memorize as memorize_command
from tfmann.data import lexical_memory_file, run_vocabularies, text_files
from tfmann.errors import UserError

SOURCE = ["der hund und die katze", "", "größe một chó", "katze sieht der hund"] * 3
TARGET = ["DIE KATZE UND DER", "HUND", "CHÓ MỘT 。 MỘT", "HUND DER KATZE"] * 3
LINES = ["der hund und die katze", "chó sieht", "unbekannt", "größe một chó"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a model, a text and the memory that was learnt of them."""
    root = tmp_path_factory.mktemp("place")
    (root / "model").mkdir()
    for split, count in (("train", 12), ("dev", 4)):
        text_files.write_lines(root / f"{split}.de", SOURCE[:count])
        text_files.write_lines(root / f"{split}.en", TARGET[:count])
    text_files.write_lines(root / "in", LINES)
    prefixes = {f"{split}_prefix": str(root / split) for split in ("train", "dev")}
    write_model(root / "model", "rnnsearch", src="de", tgt="en", **prefixes)
    assert memorize(root, "--updates=20", "--depth=4", f"--output={root / 'memory'}") == 0
    return root


def memorize(folder, *flags):
    return main.main(["memorize", f"--model={folder / 'model'}", *flags])


def translate(folder, *flags):
    argv = ["translate", f"--model={folder / 'model'}", f"--input={folder / 'in'}"]
    assert main.main([*argv, f"--output={folder / 'out'}", *flags]) == 0
    return list(text_files.iter_lines(folder / "out"))


def test_a_memory_is_learnt_and_proposes_words(folder, capsys):
    assert memorize(folder, "--updates=20", "--ranks=2") == 0
    notes = capsys.readouterr().err
    assert re.search(r"update 20 of 20: \d+\.\d% of the words in memory, mean -log beta", notes)
    assert re.search(r"dev: \d+\.\d% of the words in memory", notes)
    path = str(folder / "model" / "lexical_memory.npz")
    memory = lexical_memory_file.read(path)
    model = api.load(str(folder / "model"))
    assert memory.record["ranks"] == 2 and memory.record["dev"]["coverage"] > 0.3
    assert memory.weights["score_vector"].shape == (model.hparams.num_units,)
    target = model.translator.languages.target
    own = model.with_search(lexical_memory=path, lexical_memory_lambda=0.99)
    assert not own.untrained().hparams.lexical_memory  # which belongs to the trained weights
    words = {word for [best] in own.translate(LINES[:1]) for word in best.text.split()}
    found, _ = memory.table.entries(model.translator.languages.source.encode(LINES[0]), 100)
    assert words & set(target.vocabulary.decode(found.tolist()))


def test_translations_depend_on_the_share_of_the_memory(untraced, folder):
    plain = translate(folder)
    memory = f"--lexical_memory={folder / 'memory'}"
    assert translate(folder, memory, "--lexical_memory_lambda=0") == plain
    assert translate(folder, memory, "--lexical_memory_lambda=0.9") != plain


@pytest.mark.parametrize("weights", ["2", "3,1"])
def test_training_text_with_weights_is_drawn_from(tmp_path, weights):
    """One corpus may have a weight, too."""
    for side, lines in (("de", SOURCE), ("en", TARGET)):
        text_files.write_lines(tmp_path / f"train.{side}", lines)
    prefixes = ",".join([str(tmp_path / "train")] * len(weights.split(",")))
    h = config.HParams(src="de", tgt="en", train_prefix=prefixes, train_weights=weights)
    languages = run_vocabularies.load_or_build(h, str(tmp_path / "run"), lambda message: None)
    corpus = memorize_command._corpus(h, h.train_prefixes, languages, str(tmp_path / "encoded"))
    assert 0 < next(memorize_command._batches(corpus, h, 4)).totals[1] <= 4


def test_another_text_than_the_corpora_of_the_run_needs_no_weights(tmp_path, monkeypatch):
    for side in ("de", "en"):
        text_files.write_lines(tmp_path / f"train.{side}", ["a"])
    more = {"train_prefix": "a,b", "train_weights": "3,1"}
    config.save(config.HParams(src="de", tgt="en", **more), tmp_path / "hparams.json")
    read = []
    monkeypatch.setattr(memorize_command, "_learn", lambda _, h, *to: read.append((h, *to)))
    argv = ["memorize", f"--model={tmp_path}", f"--train_prefix={tmp_path / 'train'}"]
    assert main.main(argv) == 0
    ((h, folders, output),) = read
    assert (h.train_prefixes, h.corpus_weights) == ((str(tmp_path / "train"),), ())
    assert output == str(tmp_path / "lexical_memory.npz")
    assert folders["dev_prefix"] == str(tmp_path / "encoded")
    encoded = folders["train_prefix"]
    assert not encoded.startswith(str(tmp_path)), "the run's folder is for its own text"


@pytest.mark.parametrize("saved", [{"translation_memory": "a,b"}, {"lexical_memory": "absent"}])
def test_memories_that_a_run_has_saved_are_of_no_concern(untraced, saved, folder, tmp_path):
    """They may be gone, or be the one that is learnt anew."""
    (tmp_path / "model").mkdir()
    prefixes = {f"{split}_prefix": str(folder / split) for split in ("train", "dev")}
    write_model(tmp_path / "model", "rnnsearch", src="de", tgt="en", **prefixes, **saved)
    assert memorize(tmp_path, "--updates=1", "--depth=4", f"--output={tmp_path / 'memory'}") == 0


@pytest.mark.parametrize(
    "flags, status, message",
    [
        (["--updates=0"], 2, "--updates=0 is below the least value 1"),
        (["--learning_rate=0"], 2, "--learning_rate=0.0: expected a number above 0"),
        (["--train_prefix=absent"], 1, "no such file: absent.de"),
        (["--dev_prefix=absent"], 1, "no such file: absent.de"),
        (["--output={folder}/train.en"], 2, "the same file"),
        (["--output={folder}/model/vocab.de"], 2, "--output and the model's vocab.de are the same"),
        (["--output={folder}/none/x"], 1, "there is no folder .*none"),
        (["--output={folder}"], 1, "--output=.* is a folder; expected the name of a file"),
        (["--model=absent"], 1, "absent holds no trained model"),
    ],
)
def test_bad_commands_are_refused(flags, status, message, folder, capsys):
    flags = [flag.replace("{folder}", str(folder)) for flag in flags]
    argv = ["memorize", f"--model={folder / 'model'}", *flags]
    fails(argv, capsys, status, message, main=main.main)


def test_a_cell_with_a_cache_is_refused_before_the_work(tmp_path, capsys):
    text = {"train_prefix": str(tmp_path / "train"), "src": "de", "tgt": "en"}
    config.save(config.HParams(cell="cache", **text), tmp_path / "hparams.json")
    argv = ["memorize", f"--model={tmp_path}"]
    message = "--lexical_memory is for models without a cache, and the cell 'cache' has one"
    fails(argv, capsys, 2, message, main=main.main)


def test_a_missing_file_is_refused_before_the_model_is_loaded(folder, capsys):
    argv = ["translate", f"--model={folder / 'model'}", "--lexical_memory=absent"]
    message = "lexical_memory: there is no file absent: `tfmann memorize` makes one for a model"
    fails([*argv, f"--input={folder / 'in'}"], capsys, 1, message, main=main.main)


@pytest.mark.parametrize(
    "damage",
    ["another file", "cut short", "an array alone", "an array of another kind", "invalid blocks",
     "another method"],
)  # fmt: skip
def test_damaged_files_are_refused(damage, folder, tmp_path):
    content = (folder / "memory").read_bytes()
    path = tmp_path / "memory.npz"
    if damage == "an array of another kind":
        np.savez(path, record=np.zeros(3))
    elif damage == "an array alone":
        with path.open("wb") as stream:
            np.save(stream, np.zeros(3))
    elif damage == "invalid blocks":  # after the first file's header of 30 bytes, names and sizes
        names_and_sizes = sum(struct.unpack("<HH", content[26:30]))
        begin = 30 + names_and_sizes
        path.write_bytes(content[:begin] + b"\xff" * 9 + content[begin + 9 :])
    elif damage == "another method":  # of compression: in the entry of the first file
        entry = content.index(b"PK\x01\x02") + 10
        path.write_bytes(content[:entry] + b"\x63\0" + content[entry + 2 :])
    else:
        path.write_bytes(b"text" if damage == "another file" else content[:-90])
    with pytest.raises(UserError, match="is no lexical memory, or is damaged: make it with `tfm"):
        api.load(str(folder / "model"), lexical_memory=str(path))


def test_files_of_another_version_or_model_are_refused(folder, tmp_path):
    memory = lexical_memory_file.read(folder / "memory")
    for change, message in (
        ({"tfmann_lexical_memory": 9}, "is a lexical memory of version 9, and this tfmann reads"),
        ({"text": ["x"]}, "has the ids of another model's vocabularies or subwords"),
        ({"model": "x"}, "was learned with other weights than those of this model"),
    ):
        path = str(tmp_path / "memory")
        lexical_memory_file.write(path, memory._replace(record={**memory.record, **change}))
        with pytest.raises(UserError, match=message):
            api.load(str(folder / "model"), lexical_memory=path)


def test_an_ensemble_refuses_a_memory(folder):
    model = str(folder / "model")
    with pytest.raises(UserError, match="was learned with one model, and an ensemble has several"):
        api.load(model, ensemble=[model], lexical_memory=str(folder / "memory"))

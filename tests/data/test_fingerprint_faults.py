"""Inputs that changed since a run began: its text, vocabularies and lexicon."""

import json
from pathlib import Path

import pytest
from helpers.faults import flip_bit, truncate

from tfmann.config import HParams
from tfmann.data import fingerprints, run_vocabularies, text_files
from tfmann.errors import UserError
from tfmann.utils.checksummed_json import add_checksum
from tfmann.utils.run_folder import INPUTS


@pytest.fixture
def run(tmp_path):
    """The settings and the folder of a run, as far as its text is concerned."""
    for name in ("train", "dev", "test", "vocab"):
        for side in ("src", "tgt"):
            text_files.write_lines(tmp_path / f"{name}.{side}", ["<unk>", "<s>", "</s>", "word"])
    for name in ("train", "dev"):
        text_files.write_lines(tmp_path / f"{name}.docs", ["1", "1", "2", "2"])
    prefixes = {f"{name}_prefix": str(tmp_path / name) for name in ("train", "dev", "vocab")}
    hparams = HParams(src="src", tgt="tgt", test_prefix=str(tmp_path / "test"), **prefixes)
    out = tmp_path / "run"
    (out / "best_bleu").mkdir(parents=True)
    languages = run_vocabularies.load_or_build(hparams, str(tmp_path / "new"), print)
    run_vocabularies.save(languages, hparams, str(out))
    return hparams, str(out)


def settle(run, **changes):
    hparams, out = run
    return run_vocabularies.load_or_build(hparams.replace(**changes), out, print)


@pytest.mark.parametrize(
    "name",
    ["train.src", "train.tgt", "train.docs", "dev.src", "dev.tgt", "dev.docs", "vocab.tgt"],
)
def test_text_that_changed_behind_its_path_is_refused(run, tmp_path, name):
    path = tmp_path / name
    settle(run)
    content = path.read_bytes()
    flip_bit(path)
    with pytest.raises(UserError, match=rf"{name} \({name.split('.')[0]}_prefix\) has changed"):
        settle(run)
    run_vocabularies.load(*run)  # to translate with it is another thing
    path.write_bytes(content)
    settle(run)


@pytest.mark.parametrize("name", ["train.tgt1", "train.tgt10k", "dev.tgt0", "dev.tgt1"])
def test_files_that_a_run_does_not_read_may_change(run, tmp_path, name):
    """There is a `dev.tgt`, so `dev.tgt0` is no reference."""
    settle(run)
    (tmp_path / name).write_text("one")
    hparams, out = run
    fingerprints.record(hparams, out, {})
    (tmp_path / name).write_text("another")
    settle(run)
    assert name not in Path(out, INPUTS).read_text()


def test_a_second_reference_may_not_change(run, tmp_path):
    hparams, out = run
    (tmp_path / "dev.tgt").rename(tmp_path / "dev.tgt0")
    for number in (0, 1):
        text_files.write_lines(tmp_path / f"dev.tgt{number}", ["<unk>", "<s>", "</s>", "word"])
    fingerprints.record(hparams, out, {})
    settle(run)
    flip_bit(tmp_path / "dev.tgt1")
    with pytest.raises(UserError, match=r"dev.tgt1 \(dev_prefix\) has changed"):
        settle(run)


def test_other_text_on_another_path_is_a_wish(run, tmp_path):
    for side in ("src", "tgt"):
        text_files.write_lines(tmp_path / f"more.{side}", ["word word"])
    settle(run, train_prefix=str(tmp_path / "more"))
    flip_bit(tmp_path / "test.src")
    settle(run)
    for path in tmp_path.glob("vocab.*"):
        path.unlink()
    settle(run)


def test_text_on_another_path_is_recorded_and_may_not_change_either(run, tmp_path):
    hparams, out = run
    for side in ("src", "tgt"):
        text_files.write_lines(tmp_path / f"more.{side}", ["word word"])
    moved = hparams.replace(train_prefix=str(tmp_path / "more"))
    before = (tmp_path / "run" / "inputs.json").read_bytes()
    fingerprints.record_other_inputs(hparams, out)
    assert (tmp_path / "run" / "inputs.json").read_bytes() == before
    fingerprints.record_other_inputs(moved, out)
    settle((moved, out))
    flip_bit(tmp_path / "more.tgt")
    with pytest.raises(UserError, match=r"more\.tgt \(train_prefix\) has changed"):
        settle((moved, out))
    flip_bit(tmp_path / "dev.src")  # recorded at the beginning
    with pytest.raises(UserError, match=r"dev\.src \(dev_prefix\) has changed"):
        settle(run)


def test_another_test_takes_the_place_of_the_first(run, tmp_path):
    hparams, out = run
    assert fingerprints.other_text(hparams, fingerprints.text_digests(hparams), out) is None
    flip_bit(tmp_path / "test.tgt")
    settle(run)
    digests = fingerprints.text_digests(hparams)
    assert fingerprints.other_text(hparams, digests, out) == str(tmp_path / "test.tgt")
    fingerprints.record_other_inputs(hparams, out)
    assert fingerprints.other_text(hparams, digests, out) is None


@pytest.mark.parametrize("side", ["src", "tgt"])
def test_a_vocabulary_that_changed_in_the_runs_folder_is_refused(run, tmp_path, side):
    text_files.write_lines(tmp_path / "run" / f"vocab.{side}", ["<unk>", "<s>", "</s>", "wird"])
    for look in (lambda: settle(run), lambda: run_vocabularies.load(*run)):
        with pytest.raises(UserError, match=rf"run/vocab\.{side} has changed since this model"):
            look()


@pytest.mark.parametrize("damage", [flip_bit, truncate, lambda path: path.write_text("[]")])
def test_a_damaged_note_of_what_was_there(run, tmp_path, damage):
    path = tmp_path / "run" / "inputs.json"
    damage(path)
    with pytest.raises(UserError, match=r"inputs\.json is damaged.*Remove it"):
        settle(run)
    path.unlink()
    settle(run)


@pytest.mark.parametrize("body", [{}, {"own": []}, {"own": {}, "dev_prefix": {"given": "x"}}])
def test_a_note_of_another_shape_is_refused_though_its_seal_is_right(run, tmp_path, body):
    (tmp_path / "run" / "inputs.json").write_text(json.dumps(add_checksum(body)))
    with pytest.raises(UserError, match=r"inputs\.json is damaged.*Remove it"):
        settle(run)


def test_a_lost_note_is_reported_and_written_again(run, tmp_path):
    log = []
    (tmp_path / "run" / "inputs.json").unlink()
    flip_bit(tmp_path / "train.src")
    fingerprints.require_same_vocabularies(run[1], {"vocab.src": "anything"})
    for _ in range(2):
        run_vocabularies.record_lost_fingerprints(settle(run), *run, log.append)
        assert len(log) == 1 and log[0].startswith(f"{run[1]} has no inputs.json: whether text")
    flip_bit(tmp_path / "train.src")
    with pytest.raises(UserError, match=r"train\.src \(train_prefix\) has changed"):
        settle(run)


def test_a_given_lexicon_that_changed_is_refused(run, tmp_path):
    """It changes translations, and by those of dev the best weights are chosen."""
    lexicon = tmp_path / "lexicon"
    text_files.write_lines(lexicon, ["word wort 1"])
    hparams = run[0].replace(replace_unk=True, lexicon_file=str(lexicon))
    fingerprints.record(hparams, run[1], {})
    settle((hparams, run[1]))
    text_files.write_lines(lexicon, ["word wert 1"])
    with pytest.raises(UserError, match=r"lexicon \(lexicon_file\) has changed"):
        settle((hparams, run[1]))


@pytest.mark.parametrize(
    "changes",
    [{"src_max_len": 7}, {"tgt_max_len": 7}, {"max_len_policy": "filter"}, {"batch_size": 7},
     {"random_seed": 7}, {"train_weights": "1"}],
)  # fmt: skip
def test_what_changes_the_documents_side_by_side_is_noticed(run, changes):
    hparams, _ = run
    order = fingerprints.document_order(hparams)
    assert fingerprints.document_order(hparams.replace(num_units=7)) == order
    assert fingerprints.document_order(hparams.replace(**changes)) != order


def test_moved_text_has_the_same_order_of_documents_and_changed_text_another(run, tmp_path):
    hparams, _ = run
    order = fingerprints.document_order(hparams)
    for suffix in ("src", "tgt", "docs"):
        (tmp_path / f"train.{suffix}").rename(tmp_path / f"moved.{suffix}")
    moved = hparams.replace(train_prefix=str(tmp_path / "moved"))
    assert fingerprints.document_order(moved) == order
    flip_bit(tmp_path / "moved.docs")
    assert fingerprints.document_order(moved) != order

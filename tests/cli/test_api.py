"""Loading a run's folder: its settings, its checkpoints, what is not there."""

import itertools
import shutil

import numpy as np
import pytest
from helpers import small_models
from helpers.translations import LINES, PAIRS, TARGET_WORDS, languages, scores, texts

import tfmann
from tfmann import config
from tfmann.api import Model
from tfmann.data.vocab import Vocabulary
from tfmann.decoding.translator import Translator
from tfmann.errors import UsageError, UserError
from tfmann.training import checkpoint, named_variables
from tfmann.utils.run_folder import has_weights


def random_weights(variables, seed):
    stream = np.random.default_rng(seed)
    of_names = named_variables.by_name(variables)
    return {name: stream.normal(0, 0.7, v.shape).astype(np.float32) for name, v in of_names.items()}


@pytest.fixture
def folder(tmp_path, untraced):
    """A run's folder with a best checkpoint, and the translator whose weights it holds."""
    model = small_models.model("luong", src="aa", tgt="bb", beam_width=2, random_seed=9)
    arrays = random_weights(model.trainable_variables, 1)
    named_variables.assign(model.trainable_variables, arrays, "memory")
    root = tmp_path / "run"
    root.mkdir()
    config.save(model.hparams, root / "hparams.json")
    sides = languages()
    sides.source.vocabulary.save(root / "vocab.aa")
    sides.target.vocabulary.save(root / "vocab.bb")
    checkpoint.write(str(root / "best_bleu"), arrays, None, {"step": 7})
    return root, Translator(model, sides, model.hparams)


def test_names_of_the_package_can_be_completed():
    names = dir(tfmann)
    assert names == sorted(set(names)) and {*tfmann.__all__, "__version__"} <= set(names)
    assert all(hasattr(tfmann, name) for name in names)


def test_loaded_model_translates_as_the_one_that_was_saved(folder):
    root, saved = folder
    loaded = tfmann.load(str(root))
    assert loaded.checkpoint == str(root / "best_bleu")
    actual, expected = list(loaded.translate(LINES)), list(saved.translate(LINES))
    assert texts(actual) == texts(expected) and scores(actual) == scores(expected)
    assert len(set(itertools.chain(*texts(actual)))) > 3
    assert [f.log_prob for f in loaded.score(PAIRS)] == [f.log_prob for f in saved.force(PAIRS)]


def test_a_checkpoint_in_place_of_its_run_is_refused_with_the_run(folder):
    root, _ = folder
    step = root / "checkpoints" / "step-00000007"
    shutil.copytree(root / "best_bleu", step)
    for path in (root / "best_bleu", step):
        with pytest.raises(UserError) as error:
            tfmann.load(str(path))
        assert str(error.value) == (
            f"{path} holds no trained model: there is no hparams.json in it; it is a checkpoint of "
            f"{root}: give that folder, and this one as ckpt"
        )
    with pytest.raises(UserError, match="hparams.json in it$"):
        tfmann.load(str(root / "checkpoints"))


def test_settings_of_the_search_may_change_and_no_others(folder):
    root, _ = folder
    loaded = tfmann.load(str(root), beam_width=3, num_translations_per_input=3)
    assert [len(n_best) for n_best in loaded.translate(LINES[:2])] == [3, 3]
    with pytest.raises(UsageError, match="num_units=16"):
        tfmann.load(str(root), num_units=16)
    with pytest.raises(UsageError, match="beam_width"):
        tfmann.load(str(root), beam_widht=3)
    with pytest.raises(UsageError, match="beam_width"):
        tfmann.load(str(root), beam_width=0)
    with pytest.raises(UsageError, match="a trained model does not use dropout: training does"):
        tfmann.load(str(root), dropout=0.1)
    with pytest.raises(UsageError, match="batch_size: did you mean infer_batch_size"):
        loaded.with_search(batch_size=8)


def test_checkpoint_of_another_model_is_refused(folder):
    root, saved = folder
    config.save(saved.hparams.replace(num_units=16), root / "hparams.json")
    with pytest.raises(UserError, match="another model's.* there and .* here"):
        tfmann.load(str(root))
    config.save(saved.hparams, root / "hparams.json")
    Vocabulary.from_tokens(TARGET_WORDS[1:]).save(root / "vocab.bb")
    with pytest.raises(UserError, match="another model's"):
        tfmann.load(str(root))


def test_a_checkpoint_that_has_learned_other_words_is_refused(folder, tmp_path):
    """Of a run with as many words, so that all shapes are the same."""
    root, saved = folder
    shutil.copytree(root, tmp_path / "other")
    for ckpt in (tmp_path / "other", tmp_path / "other" / "best_bleu"):
        assert tfmann.load(str(root), str(ckpt)).checkpoint.startswith(str(tmp_path / "other"))
    Vocabulary.from_tokens(TARGET_WORDS[::-1]).save(tmp_path / "other" / "vocab.bb")
    for ckpt in (tmp_path / "other", tmp_path / "other" / "best_bleu"):
        with pytest.raises(UserError, match=f"ckpt={ckpt} has learned other words, .*vocab.bb: "):
            tfmann.load(str(root), str(ckpt))
    shutil.copytree(tmp_path / "other" / "best_bleu", tmp_path / "copy")  # of an unknown run
    assert tfmann.load(str(root), str(tmp_path / "copy")).checkpoint == str(tmp_path / "copy")


@pytest.mark.quick("gone")
@pytest.mark.parametrize("damage", ["cut", "flipped", "no weights", "no state", "gone"])
def test_unreadable_best_falls_back_to_the_latest_checkpoint(folder, damage):
    root, saved = folder
    variables = saved.model.trainable_variables
    for step in (3, 5):
        arrays = random_weights(variables, step)
        checkpoint.write(str(root / f"checkpoints/step-{step:08d}"), arrays, None, {"step": step})
    weights = root / "best_bleu/weights.npz"
    content = weights.read_bytes()
    if damage == "cut":
        weights.write_bytes(content[:-10])
    elif damage == "flipped":
        middle = len(content) // 2
        weights.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    elif damage == "no weights":
        weights.unlink()
    else:
        (root / "best_bleu/state.json").unlink()
        if damage == "gone":
            weights.unlink()
            weights.parent.rmdir()
    log = []
    loaded = tfmann.load(str(root), log=log.append)
    latest = str(root / "checkpoints/step-00000005")
    assert loaded.checkpoint == latest
    assert log[-1] == f"weights of {latest}"
    assert any("falling back to" in line for line in log) == (damage != "gone")
    named_variables.assign(variables, random_weights(variables, 5), "memory")
    assert texts(loaded.translate(LINES)) == texts(saved.translate(LINES))
    if damage != "gone":
        with pytest.raises(UserError, match="best_bleu"):
            tfmann.load(str(root), ckpt=str(root / "best_bleu"))


def test_a_best_checkpoint_that_a_kill_left_between_two_renames_is_found(folder):
    root, saved = folder
    arrays = random_weights(saved.model.trainable_variables, 3)
    checkpoint.write(str(root / "checkpoints/step-00000003"), arrays, None, {"step": 3})
    expected = [f.log_prob for f in saved.force(PAIRS)]
    best, old, log = root / "best_bleu", root / "best_bleu.old", []
    best.rename(old)
    for ckpt in (None, str(best)):
        loaded = tfmann.load(str(root), ckpt=ckpt, log=log.append)
        assert loaded.checkpoint == str(old)
        assert len(log) == 2 and str(old) in log[0] and log[1] == f"weights of {old}"
        log.clear()
    assert [f.log_prob for f in loaded.score(PAIRS)] == expected
    checkpoint.write(str(best), arrays, None, {"step": 9})
    assert not old.exists()
    assert tfmann.load(str(root), log=log.append).checkpoint == str(best) and len(log) == 1


def test_a_run_whose_best_checkpoint_is_between_two_renames_has_begun(folder):
    root, _ = folder
    assert has_weights(str(root))
    (root / "best_bleu").rename(root / "best_bleu.old")
    assert has_weights(str(root))
    (root / "best_bleu.old").rename(root / "elsewhere")
    assert not has_weights(str(root))


def test_another_vocabulary_than_the_runs_is_refused(folder):
    root, _ = folder
    with pytest.raises(UsageError, match=r"vocab_size=9 \(saved: 0\).*train_prefix"):
        tfmann.load(str(root), vocab_size=9)
    prefix = str(root / "vocab")
    assert tfmann.load(str(root), vocab_prefix=prefix).hparams.vocab_prefix == prefix
    with pytest.raises(UsageError, match=r"vocab_prefix='absent' \(saved: None\)"):
        tfmann.load(str(root), vocab_prefix="absent")


def test_alignments_of_a_cell_that_has_none():
    """Refused when they are requested, not when the first line is translated."""

    class Searcher:
        hparams = config.HParams(cell="ntm", encoder_type="memory")

    model = Model(Searcher(), "nowhere")
    with pytest.raises(UsageError, match="align needs .*'ntm' has no alignments"):
        model.align(PAIRS)
    with pytest.raises(UsageError, match="with_attention needs .*'ntm' has no alignments"):
        model.translate(LINES, with_attention=True)


def test_a_checkpoint_may_be_a_path_as_well_as_its_name(folder, tmp_path):
    root, _ = folder
    best = root / "best_bleu"
    loaded = tfmann.load(root, ckpt=best, ensemble=[root])
    assert (loaded.checkpoint, loaded.ensemble) == (str(best), (str(best),))
    assert repr(loaded) == f"<tfmann.Model: luong, weights of {best}, {best}>"
    facts = tfmann.load(root, ckpt=best).export(str(tmp_path / "export"))
    assert facts["checkpoint"] == str(best)
    with pytest.raises(TypeError, match="expected the folder of a run, 'runs/a', not 3"):
        tfmann.load(root, ckpt=3)


def test_a_given_checkpoint_is_the_one_that_is_used(folder):
    root, saved = folder
    arrays = random_weights(saved.model.trainable_variables, 3)
    folder_of_step = str(root / "checkpoints/step-00000003")
    checkpoint.write(folder_of_step, arrays, None, {"step": 3})
    loaded = tfmann.load(str(root), ckpt=folder_of_step)
    assert loaded.checkpoint == folder_of_step
    assert [f.log_prob for f in loaded.score(PAIRS)] != [f.log_prob for f in saved.force(PAIRS)]


@pytest.mark.parametrize("folder", [None, 3, b"runs/a"])
def test_a_folder_that_is_no_path_is_named(folder):
    message = f"expected the folder of a run, 'runs/a', not {folder!r}"
    for load in (lambda: tfmann.load(folder), lambda: tfmann.load("runs/a", ensemble=[folder])):
        with pytest.raises(TypeError) as error:
            load()
        assert str(error.value) == message


def test_folder_without_a_model_is_named(folder, monkeypatch):
    root, _ = folder
    with pytest.raises(UserError, match="no-such-run holds no trained model: .* no such folder$"):
        tfmann.load(str(root / "no-such-run"))
    monkeypatch.chdir(root)
    with pytest.raises(UserError, match=f"^runs/a holds .*: there is no such folder in {root}$"):
        tfmann.load("runs/a")
    (root / "best_bleu/state.json").unlink()
    with pytest.raises(UserError, match="holds no intact checkpoint"):
        tfmann.load(str(root))
    (root / "vocab.bb").unlink()
    with pytest.raises(UserError, match="vocab.bb"):
        tfmann.load(str(root))

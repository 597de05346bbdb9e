"""The script that packs the models of the page."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from helpers.command_line import write_model

from tfmann import api, config
from tfmann.training import checkpoint
from tfmann.utils import resources

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "play_models.py"


def script():
    spec = importlib.util.spec_from_file_location("play_models", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_recipe_has_settings_and_a_start():
    recipes = script().RECIPES
    for recipe in recipes.values():
        assert resources.settings_path(recipe.hparams)
        assert not recipe.start or recipe.start in recipes


def test_a_run_of_other_settings_is_not_packed(tmp_path):
    recipe, settings = script().RECIPES["luong"], {"random_seed": 1, "num_train_steps": 1500}
    hparams = config.make(settings, resources.settings_path(recipe.hparams))
    config.save(hparams, tmp_path / "hparams.json")
    script()._require_same_settings(tmp_path, recipe, settings)
    config.save(hparams.replace(dropout=0.4), tmp_path / "hparams.json")
    with pytest.raises(
        SystemExit, match=r"other settings than today's: dropout 0\.4 -> .*\. Delete"
    ):
        script()._require_same_settings(tmp_path, recipe, settings)


def test_a_compressed_model_is_smaller_and_the_same(tmp_path):
    folder = write_model(tmp_path, num_units=32)
    best = folder / "best_bleu"
    arrays = checkpoint.read_arrays(str(best))
    rounded = {name: value.astype(np.float16).astype(np.float32) for name, value in arrays.items()}
    checkpoint.write(str(best), rounded, None, {})
    size = (best / "weights.npz").stat().st_size
    script()._compress(best)
    assert (best / "weights.npz").stat().st_size < 0.75 * size
    packed = checkpoint.read_arrays(str(best))
    assert all(np.array_equal(packed[name], value) for name, value in rounded.items())
    assert api.load(str(folder)).checkpoint == str(best)

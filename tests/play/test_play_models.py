"""The script that packs the models of the page."""

import importlib.util
from pathlib import Path

import numpy as np
from helpers.command_line import write_model

from tfmann import api
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

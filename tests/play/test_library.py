"""The models of the page: those that are shipped, and the user's."""

import json

import numpy as np
import pytest

from tfmann import errors
from tfmann.data.text_files import iter_lines
from tfmann.play import library
from tfmann.serving.requests import RequestError
from tfmann.training import checkpoint

SHIPPED = library.shipped()


def test_models_come_with_the_package_and_are_small():
    assert {entry.cell for entry in SHIPPED} == {
        "cache", "coverage", "dnc", "key_value", "kvmematt", "kvmematt_transformer", "luong", "mad",
        "mematt", "memdec", "ntm", "ntm_attention", "past_future", "previous", "rnnsearch",
        "summary", "transformer",
    }  # fmt: skip
    sizes = [path.stat().st_size for path in library.SHIPPED.rglob("*") if path.is_file()]
    assert sum(sizes) <= 10e6
    record = json.loads((library.SHIPPED / "models.json").read_text(encoding="utf-8"))
    for entry in record.values():
        assert {"bleu", "steps", "seed", "hparams", "changes", "revision", "date"} <= set(entry)


@pytest.mark.parametrize("entry", SHIPPED, ids=lambda entry: entry.name)
def test_a_shipped_model_has_weights_of_16_bits_and_knows_its_examples(entry):
    folder = library.SHIPPED / entry.name
    arrays = checkpoint.read_arrays(str(folder / "best_bleu"))
    assert all(np.array_equal(value, value.astype(np.float16)) for value in arrays.values())
    vocabulary = set(iter_lines(folder / "vocab.src"))
    for document in entry.examples:
        assert all(set(line.split()) <= vocabulary for line in document), document


def test_a_shipped_example_is_what_the_model_says():
    entry = next(entry for entry in SHIPPED if entry.name == "kvmematt")
    shelf = library.Library([entry])
    shipped = shelf.trace(entry.name, entry.examples[0], [])
    assert not shelf._models  # nothing had to be loaded
    example = shelf._example
    shelf._example = lambda name: None
    computed = shelf.trace(entry.name, entry.examples[0], [])
    assert shelf._models and example(entry.name)["trace"] == shipped
    assert computed["tokens"] == shipped["tokens"]
    for name, values in shipped["arrays"].items():
        np.testing.assert_allclose(computed["arrays"][name], values, atol=1e-3)


def test_models_of_the_user_are_called_as_their_directories(model, tmp_path):
    [entry] = library.of_runs([str(model)], [])
    assert entry.name == model.name and entry.cell == "luong" and not entry.documents
    with pytest.raises(errors.UsageError, match="already"):
        library.of_runs([str(model), f"{model}/"], [])
    with pytest.raises(errors.UserError, match="no trained model"):
        library.of_runs([str(tmp_path)], [])
    with pytest.raises(RequestError, match="there is no model 'x'"):
        library.Library([entry]).trace("x", ["der"], [])

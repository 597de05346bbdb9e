"""Keys of a settings file that are no settings, but have a meaning elsewhere."""

import json

import pytest

from tfmann import config, nmt
from tfmann.config.other_names import COMMAND_FLAGS
from tfmann.errors import UsageError


def test_the_flags_that_are_no_settings_are_known_to_be():
    assert set(nmt.define_flags()) - set(config.FIELDS) - {"help", "h", "version"} == COMMAND_FLAGS


@pytest.mark.parametrize(
    "key, words",
    [
        ("out_dir", "there is no setting 'out_dir': it is a flag of the command line, --out_dir"),
        ("data", "it is a flag of the command line, --data"),
        ("num_buckets", "--bucket_pool is the number of batches"),
        ("attention_architecture", "there is no setting 'attention_architecture': --cell chooses"),
    ],
)
def test_a_settings_file_with_a_name_that_is_no_setting_is_refused_with_advice(
    tmp_path, key, words
):
    path = tmp_path / "h.json"
    path.write_text(json.dumps({"num_units": 8, key: "x"}))
    with pytest.raises(UsageError) as error:
        config.read_json(path)
    assert str(error.value).startswith(f"{path}: ") and words in str(error.value)
    assert "did you mean" not in str(error.value)

"""Any text as a file of settings: settings, or a message that names the file."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfmann import config
from tfmann.config import FIELDS
from tfmann.errors import UsageError

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8),
    st.sampled_from(["luong", "bi", "sgd", "beam_search", "", "spm"]),
    st.sampled_from([10**400, -(10**400), 2**31, 2**63, 0, 1, 2, 0.0, 0.5, math.nan]),
)  # fmt: skip
values = st.recursive(
    scalars, lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(), part, max_size=3)
)
keys = st.one_of(st.sampled_from(sorted(FIELDS)), st.text(max_size=8))
objects = st.dictionaries(keys, values, max_size=6).map(json.dumps)
near_json = st.text(alphabet='{}[]":,\\u0dN aef19.-+Etrun\n\t', max_size=40)


@pytest.fixture(scope="module")
def fuzz_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@settings(max_examples=400, derandomize=True)
@given(text=st.one_of(objects, values.map(json.dumps), near_json, st.text(max_size=20)))
def test_any_text_gives_settings_or_a_usage_error(fuzz_folder, text):
    path = fuzz_folder / "h.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        hparams = config.make({}, str(path))
    except UsageError as error:
        assert "h.json" in str(error)
        return
    for key, value in json.loads(text).items():
        assert getattr(hparams, key) == value
    config.save(hparams, fuzz_folder / "again.json")
    assert config.make({}, str(fuzz_folder / "again.json")) == hparams

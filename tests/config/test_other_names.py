"""Keys of a settings file that are no settings, but have a meaning elsewhere."""

import json

import pytest
from helpers.command_line import ROOT

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


def test_all_keys_of_a_settings_file_that_have_to_go_are_named_together(tmp_path):
    """As in the standard_hparams of tensorflow/nmt, which set eleven of them."""
    path = tmp_path / "h.json"
    path.write_text(
        json.dumps(
            {
                "attention_architecture": "standard",
                "num_units": 512,
                "metrics": ["bleu"],
                "src_max_len_infer": None,
                "num_layer": 2,
                "steps_per_external_eval": None,
            }
        )
    )
    with pytest.raises(UsageError) as error:
        config.read_json(path)
    assert [line.split(": ")[1:3] for line in str(error.value).splitlines()] == [
        ["src_max_len_infer", "expected int, got None"],
        ["steps_per_external_eval", "expected int, got None"],
        ["there is no setting 'attention_architecture'", "--cell chooses the model"],
        ["there is no setting 'metrics'", "BLEU, chrF and TER are always computed"],
        ["unknown key 'num_layer'; did you mean 'num_layers'?"],
    ]
    assert "steps_per_external_eval: expected int, got None: leave it out" in str(error.value)


# The defaults of tensorflow/nmt (nmt/nmt.py) that are not "none given".
NMT_DEFAULTS = {
    "attention": "", "avg_ckpts": False, "batch_size": 128, "beam_width": 0,
    "coverage_penalty_weight": 0.0, "decay_scheme": "", "dropout": 0.2, "encoder_type": "uni",
    "forget_bias": 1.0, "infer_batch_size": 32, "infer_mode": "greedy", "init_op": "uniform",
    "init_weight": 0.1, "learning_rate": 1.0, "length_penalty_weight": 0.0,
    "max_gradient_norm": 5.0, "num_keep_ckpts": 5, "num_layers": 2, "num_train_steps": 12000,
    "num_translations_per_input": 1, "num_units": 32, "optimizer": "sgd", "random_seed": None,
    "sampling_temperature": 0.0, "share_vocab": False, "src_max_len": 50, "steps_per_stats": 100,
    "subword_option": "", "tgt_max_len": 50, "unit_type": "lstm", "warmup_scheme": "t2t",
    "warmup_steps": 0,
}  # fmt: skip


def test_the_page_names_every_default_that_is_not_that_of_tensorflow_nmt():
    page = (ROOT / "docs" / "from_tensorflow_nmt.md").read_text(encoding="utf-8")
    table = page[page.index("| tensorflow/nmt | here |") :]
    others = {name for name, value in NMT_DEFAULTS.items() if config.FIELDS[name].default != value}
    assert {"attention", "infer_mode", "random_seed"} <= others
    assert [name for name in sorted(others) if f"| `{name}` " not in table
            and f", `{name}` " not in table] == []  # fmt: skip

"""Settings: what wins, and what is refused and in which words."""

import dataclasses
import json

import numpy as np
import pytest

from tfmann import config, nmt
from tfmann.config import FIELDS, HParams
from tfmann.errors import UsageError, UserError


def json_file(tmp_path, values, name="h.json"):
    path = tmp_path / name
    path.write_text(values if isinstance(values, str) else json.dumps(values), encoding="utf-8")
    return str(path)


def test_explicit_over_json_over_default(tmp_path):
    path = json_file(tmp_path, {"num_units": 7, "dropout": 0.3})
    hparams = config.make({"num_units": 9}, path)
    assert (hparams.num_units, hparams.dropout) == (9, 0.3)
    assert hparams.num_layers == FIELDS["num_layers"].default
    assert config.make({}, None) == HParams()


def test_an_explicit_flag_wins_even_where_it_is_the_default(tmp_path):
    path = json_file(tmp_path, {"num_layers": 4, "share_vocab": True, "subword_option": "bpe"})
    default = FIELDS["num_layers"].default
    _, explicit = nmt.parse([f"--num_layers={default}", "--noshare_vocab", "--subword_option="])
    assert explicit == {"num_layers": default, "share_vocab": False, "subword_option": ""}
    hparams = config.make(explicit, path)
    assert (hparams.num_layers, hparams.share_vocab, hparams.subword_option) == (default, False, "")


def test_flags_have_the_defaults_of_the_fields():
    values = nmt.define_flags()
    for name, field in FIELDS.items():
        assert values[name].default == field.default, name
    _, explicit = nmt.parse([])
    assert explicit == {}


@pytest.mark.parametrize(
    "key, nearest",
    [("num_unit", "num_units"), ("dropuot", "dropout"), ("learning_rates", "learning_rate")],
)
def test_an_unknown_key_is_refused_with_the_nearest_name(tmp_path, key, nearest):
    path = json_file(tmp_path, {key: 1})
    for call in (
        lambda: config.read_json(path),
        lambda: config.make({key: 1}),
        lambda: HParams().replace(**{key: 1}),
        lambda: nmt.parse([f"--{key}=1"]),
    ):
        with pytest.raises(UsageError) as error:
            call()
        assert key in str(error.value) and nearest in str(error.value)
    with pytest.raises(UsageError, match=r"h\.json: unknown key"):
        config.read_json(path)


def test_an_unknown_cell_is_named_before_the_settings_that_only_it_has(tmp_path):
    with pytest.raises(UsageError) as error:
        config.read_json(json_file(tmp_path, {"slots_of_mine": 8, "cell": "mine"}))
    lines = str(error.value).splitlines()
    assert len(lines) == 2 and "cell: 'mine' is not one of " in lines[0]
    assert "slots_of_mine" in lines[1]


def test_a_setting_with_the_name_of_a_flag_of_the_command_is_refused_by_name(monkeypatch):
    fields = {**config.FIELDS, "out_dir": config.FIELDS["num_units"]}
    monkeypatch.setattr(config, "FIELDS", fields)
    with pytest.raises(TypeError, match="--out_dir is a flag of the command line"):
        nmt.define_flags()


def test_whole_numbers_of_numpy_are_taken():
    units = HParams(num_units=np.int64(512)).num_units
    assert units == 512 and type(units) is int


def test_a_key_that_is_like_none_gets_no_suggestion(tmp_path):
    with pytest.raises(UsageError) as error:
        config.read_json(json_file(tmp_path, {"zzzz": 1}))
    assert "did you mean" not in str(error.value)


@pytest.mark.parametrize(
    "key, value, words",
    [
        ("num_units", "512", "expected int, got '512'"),
        ("num_units", 512.0, "expected int, got 512.0"),
        ("num_units", True, "expected int, got True"),
        ("num_units", None, "expected int, got None"),
        ("num_units", [512], r"expected int, got \[512\]"),
        ("dropout", "0.2", "expected float, got '0.2'"),
        ("dropout", False, "expected float, got False"),
        ("share_vocab", 1, "expected bool, got 1"),
        ("share_vocab", "true", "expected bool, got 'true'"),
        ("src", 3, "expected str, got 3"),
        ("cell", {"name": "luong"}, "expected str"),
        ("num_units", 0, "0 is below the least value 1"),
        ("dropout", -0.1, "below the least value 0"),
        ("dropout", 1.0, "1.0 is not below 1.0"),
        ("learning_rate", 1e39, "1e\\+39 is above the greatest value 3.4e\\+38"),
        ("forget_bias", -1e39, "below the least value -3.4e\\+38"),
        ("num_units", 10**30, "above the greatest value 2147483647"),
        ("beam_width", 10**9, "above the greatest value 1000"),
        ("tgt_max_len_infer", 3 * 10**9, "above the greatest value 10000"),
        ("num_layers", 1000, "above the greatest value 32"),
        ("dropout", 10**400, "expected a finite number"),
        ("random_seed", 2**31, "above the greatest value"),
        ("cell", "lstm", "'lstm' is not one of '.*'luong', "),
        ("optimizer", "", "'' is not one of 'sgd', 'adam', 'adadelta'"),
    ],
)
def test_a_wrong_value_is_refused_by_key_rule_and_file(tmp_path, key, value, words):
    path = json_file(tmp_path, {key: value})
    with pytest.raises(UsageError, match=words) as error:
        config.read_json(path)
    assert str(error.value).startswith(f"{path}: {key}: ")
    with pytest.raises(UsageError, match=words):
        HParams(**{key: value})


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
def test_numbers_that_are_none_are_refused(tmp_path, number):
    path = json_file(tmp_path, f'{{"learning_rate": {number}}}')
    with pytest.raises(UsageError, match=r"h\.json: learning_rate: expected a finite number"):
        config.read_json(path)
    with pytest.raises(UsageError, match="learning_rate: expected a finite number"):
        nmt.parse([f"--learning_rate={number.replace('Infinity', 'inf')}"])


@pytest.mark.parametrize(
    "text, words",
    [
        ('{"num_units": 1, "num_units": 1}', "the key 'num_units' is given twice"),
        ("[]", "expected one flat JSON object, got list"),
        ('"cell"', "expected one flat JSON object, got str"),
        ("null", "expected one flat JSON object, got NoneType"),
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("{'num_units': 1}", "is not JSON"),
        ('{"num_units": 1,}', "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ('{"num_units": ' * 50_000, "is not JSON"),
        ("{}\ufeff", "is not JSON"),
    ],
)
def test_what_is_no_flat_object_is_refused_by_file(tmp_path, text, words):
    path = json_file(tmp_path, text)
    with pytest.raises(UsageError, match=words) as error:
        config.read_json(path)
    assert path in str(error.value)


def test_an_endless_integer_is_refused(tmp_path):
    """By Python itself, which reads no more than 4300 digits, or by the rule of the key."""
    for key in ("learning_rate", "random_seed"):
        with pytest.raises(UsageError, match=r"h\.json"):
            config.read_json(json_file(tmp_path, f'{{"{key}": {"9" * 5000}}}'))


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "latin").write_bytes(b'{"src": "\xe9"}')
    for path in (tmp_path / "absent", tmp_path, tmp_path / "latin", "a\0b"):
        with pytest.raises(UsageError, match="cannot read the hparams file") as error:
            config.read_json(path)
        assert str(path) in str(error.value)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"encoder_type": "bi", "num_layers": 3}, "num_encoder_layers=3 with encoder_type='bi'"),
        (
            {"encoder_type": "bi", "num_layers": 2, "num_encoder_layers": 5},
            "num_encoder_layers=5 with",
        ),
        ({"infer_mode": "sample", "sampling_temperature": 1e-300}, "of at least 1e-06"),
        ({"infer_mode": "greedy", "num_translations_per_input": 2}, "needs infer_mode="),
        ({"beam_width": 3, "num_translations_per_input": 4}, "is more than beam_width=3"),
        ({"subword_option": "spm"}, "needs subword_model"),
        ({"cell": "ntm", "coverage_penalty_weight": 0.1}, "=0.1 needs alignments.*'ntm' has no"),
        ({"src": "en", "tgt": "en"}, "src and tgt are both 'en'"),
        (
            {"decay_scheme": "cosine", "decay_steps": 300, "warmup_steps": 300},
            "decay_steps=300 ends before the rate begins to fall",
        ),
        (
            {"decay_scheme": "plateau", "plateau_patience": 3, "early_stopping_patience": 3},
            "early_stopping_patience=3 ends the run before plateau_patience=3 lets",
        ),
        ({"cell": "dnc", "bridge": "zero"}, "bridge='zero' passes on none"),
        ({"cell": "ntm", "encoder_type": "transformer"}, "set encoder_type='memory'"),
        ({"cell": "cache", "cache_gate_loss_weight": 0.3}, "set cache_fusion='shallow'"),
    ],
)
def test_settings_that_cannot_go_together(changes, words):
    with pytest.raises(UsageError, match=words):
        HParams(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"encoder_type": "bi", "num_layers": 1},
        {"encoder_type": "bi", "num_layers": 3, "num_encoder_layers": 4},
        {"infer_mode": "sample", "num_translations_per_input": 40},
        {"infer_mode": "greedy", "sampling_temperature": 0.0},
        {"beam_width": 4, "num_translations_per_input": 4},
        {"subword_option": "spm", "subword_model": "m"},
        {"cell": "dnc", "encoder_type": "memory", "bridge": "zero"},
        {"cell": "luong", "bridge": "zero"},
    ],
)
def test_settings_that_go_together_are_taken(changes):
    assert changes.items() <= HParams(**changes).as_dict().items()


@pytest.mark.parametrize(
    "name, changes",
    [
        ("neural_cache_theta", {"neural_cache_size": 5}),
        ("neural_cache_lambda", {"neural_cache_size": 5}),
        ("translation_memory_pairs", {"translation_memory": "a,b"}),
        ("translation_memory_neighbors", {"translation_memory": "a,b"}),
        ("translation_memory_tau", {"translation_memory": "a,b"}),
        ("translation_memory_lambda", {"translation_memory": "a,b"}),
        ("lexical_memory_lambda", {"lexical_memory": "a.npz"}),
        ("shortlist_first", {"shortlist": "lexicon"}),
        ("shortlist_best", {"shortlist": "lexicon"}),
        ("sampling_temperature", {"infer_mode": "sample"}),
        ("sampling_top_k", {"infer_mode": "sample"}),
        ("sampling_top_p", {"infer_mode": "sample"}),
        ("beam_width", {"infer_mode": "beam_search"}),
        ("length_penalty_weight", {"infer_mode": "beam_search"}),
        ("coverage_penalty_weight", {"infer_mode": "beam_search"}),
        ("length_penalty_weights", {"infer_mode": "beam_search"}),
        ("beam_width", {"dev_infer_mode": "beam_search"}),
    ],
)
def test_a_given_setting_of_a_search_that_is_not_made_is_refused(name, changes):
    needed = next(iter(changes)).replace("dev_", "")
    greedy = HParams(infer_mode="greedy")
    with pytest.raises(UsageError, match=f"^--{name} has no effect with.*give --{needed}"):
        config.refuse_idle([name], greedy)
    config.refuse_idle([name, "infer_batch_size"], greedy.replace(**changes))


@pytest.mark.parametrize(
    "name, changes",
    [
        ("adadelta_rho", {"optimizer": "adadelta"}),
        ("adadelta_epsilon", {"optimizer": "adadelta"}),
        ("warmup_scheme", {"warmup_steps": 5}),
        ("decay_steps", {"decay_scheme": "luong5"}),
        ("decay_steps", {"decay_scheme": "cosine"}),
        ("plateau_patience", {"decay_scheme": "plateau"}),
        ("init_weight", {"init_op": "normal"}),
        ("embedding_init_weight", {"embedding_init_op": "normal"}),
        ("annotation_merge", {"encoder_type": "bi"}),
        ("forget_bias", {"unit_type": "lstm"}),
    ],
)
def test_a_given_setting_of_training_without_effect_is_refused(name, changes):
    glorot = HParams(init_op="glorot_uniform", embedding_init_op="glorot_uniform", unit_type="gru")
    needed = next(iter(changes))
    with pytest.raises(UsageError, match=f"^--{name} has no effect with.*give --{needed}"):
        config.refuse_idle([name], glorot)
    config.refuse_idle([name, "random_seed"], glorot.replace(**changes))


@pytest.mark.parametrize(
    "name, idle, changes",
    [
        ("coverage_size", {"cell": "coverage"}, {"coverage_model": "neural"}),
        ("max_fertility", {"coverage_model": "neural"}, {"coverage_model": "fertility"}),
        ("max_fertility", {"coverage_model": "linguistic"}, {"coverage_model": "fertility"}),
        ("dnc_mask_floor", {}, {"dnc_masking": True}),
        ("dnc_layer_norm", {"cell": "mad"}, {"external_addressing": "dnc"}),
        (
            "shift_range",
            {"cell": "mad", "external_addressing": "dnc"},
            {"external_addressing": "ntm"},
        ),
        ("compile_memory", {"cell": "mad", "batch_type": "tokens"}, {"batch_type": "sentences"}),
    ],
)
def test_a_given_setting_of_another_kind_of_memory_is_refused(name, idle, changes):
    hparams, needed = HParams(**idle), next(iter(changes))
    with pytest.raises(UsageError, match=f"^--{name} has no effect with.*give --{needed}"):
        config.refuse_idle([name], hparams)
    config.refuse_idle([name, "cell"], hparams.replace(**changes))


@pytest.mark.parametrize("name", ["shift_range", "dnc_layer_norm"])
def test_only_mad_has_an_addressing_to_choose(name):
    config.refuse_idle([name], HParams(cell="ntm" if name == "shift_range" else "dnc",
                                       encoder_type="memory"))  # fmt: skip


@pytest.mark.parametrize("name", ["vocab_size", "vocab_min_frequency"])
def test_the_pieces_of_a_model_are_no_counted_vocabulary(name):
    pieces = HParams(subword_option="spm", subword_model="m")
    with pytest.raises(UsageError, match=f"^--{name} has no effect with subword_option='spm': "):
        config.refuse_idle([name], pieces)
    config.refuse_idle([name], pieces.replace(subword_option="bpe"))


def test_decay_steps_do_not_bound_a_plateau():
    plateau = HParams(decay_scheme="plateau")
    with pytest.raises(UsageError, match="decay_scheme='plateau': give --decay_scheme=luong5 or"):
        config.refuse_idle(["decay_steps"], plateau)


def test_a_wrong_combination_in_a_file_names_the_file(tmp_path):
    path = json_file(tmp_path, {"subword_option": "spm"})
    with pytest.raises(UsageError, match=r"h\.json: subword_option='spm' needs"):
        config.make({}, path)


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path):
    path = tmp_path / "h.json"
    path.write_bytes(b'\xef\xbb\xbf{"num_units": 7}')
    assert config.read_json(path) == {"num_units": 7}


def test_derived_sizes():
    hparams = HParams(num_units=8, num_layers=4, encoder_type="bi")
    assert (hparams.encoder_layers, hparams.decoder_layers, hparams.embedding_width) == (4, 4, 8)
    assert hparams.final_states == 4
    hparams = hparams.replace(num_encoder_layers=1, num_decoder_layers=3, embedding_size=5)
    assert (hparams.encoder_layers, hparams.decoder_layers, hparams.embedding_width) == (1, 3, 5)
    assert hparams.final_states == 2  # one layer, two directions
    assert hparams.replace(encoder_type="uni").final_states == 1


def test_a_record_does_not_change():
    hparams = HParams()
    with pytest.raises(dataclasses.FrozenInstanceError):
        hparams.num_units = 3
    changed = hparams.replace(num_units=3)
    assert (changed.num_units, hparams.num_units) == (3, FIELDS["num_units"].default)


def test_self_attention_stays_as_wide_as_the_targets_of_training():
    saved = HParams(cell="transformer", tgt_max_len=60).as_dict()
    for given, window in (({}, 0), ({"tgt_max_len": 60}, 0), ({"tgt_max_len": 3}, 61)):
        merged = config.merge_saved(saved, given, "D")
        assert merged.self_attention_window == window
    again = config.merge_saved(merged.as_dict(), {"tgt_max_len": 60}, "D")
    assert (again.tgt_max_len, again.self_attention_window) == (60, 61)
    luong = config.merge_saved(HParams(cell="luong").as_dict(), {"tgt_max_len": 3}, "D")
    assert luong.self_attention_window == 0


def test_saved_settings_come_back(tmp_path):
    hparams = HParams(src="né", tgt="\u2028", dropout=0, learning_rate=1e-30, share_vocab=True)
    assert isinstance(hparams.dropout, float)
    path = tmp_path / "hparams.json"
    config.save(hparams, path)
    assert config.make({}, str(path)) == hparams
    assert list(config.read_json(path)) == list(FIELDS)
    assert [p.name for p in tmp_path.iterdir()] == ["hparams.json"]


def test_a_save_that_fails_leaves_the_old_file(tmp_path):
    with pytest.raises(UserError, match="cannot write .*absent"):
        config.save(HParams(), tmp_path / "absent" / "hparams.json")
    (tmp_path / "hparams.json").mkdir()
    with pytest.raises(UserError, match="cannot write"):
        config.save(HParams(), tmp_path / "hparams.json")
    assert [p.name for p in tmp_path.iterdir()] == ["hparams.json"]


def test_a_trained_model_keeps_its_architecture():
    saved = HParams(num_units=16, dropout=0.1, forget_bias=1.0).as_dict()
    merged = config.merge_saved(saved, {"num_units": 16, "dropout": 0.4}, "D")
    assert (merged.num_units, merged.dropout) == (16, 0.4)
    assert config.merge_saved(saved, {"forget_bias": 1}, "D").forget_bias == 1.0
    with pytest.raises(UsageError) as error:
        config.merge_saved(saved, {"num_units": 32, "cell": "rnnsearch"}, "the/folder")
    for part in ("the/folder", "num_units=32 (saved: 16)", "cell='rnnsearch' (saved: 'luong')"):
        assert part in str(error.value)
    with pytest.raises(UsageError, match="unknown key"):
        config.merge_saved(saved, {"num_unit": 1}, "D")


def test_a_trained_model_keeps_its_direction():
    saved = HParams(src="de", tgt="en").as_dict()
    with pytest.raises(UsageError, match=r"D holds .*src='en' \(saved: 'de'\), tgt='de' \(saved"):
        config.merge_saved(saved, {"src": "en", "tgt": "de"}, "D")
    for pair in ({"src": "de", "tgt": "en"}, {"src": "bpe.de", "tgt": "bpe.en"}, {"src": "de"}):
        assert config.merge_saved(saved, pair, "D").src == pair["src"]
    assert config.merge_saved(HParams().as_dict(), {"src": "en", "tgt": "de"}, "D").src == "en"


@pytest.mark.parametrize("key", [k for k, f in FIELDS.items() if f.kind == "architecture"])
def test_every_architecture_key_is_refused(key):
    field = FIELDS[key]
    changed = {
        bool: lambda: not field.default,
        int: lambda: field.default + 2,
        float: lambda: field.default + 1,
        str: lambda: next(c for c in field.choices if c != field.default),
    }[field.type]()
    with pytest.raises(UsageError, match=f"{key}=.*saved"):
        config.merge_saved(HParams().as_dict(), {key: changed}, "D")


def test_a_file_has_the_values_of_its_base_and_its_own(tmp_path):
    json_file(tmp_path, {"num_units": 7, "dropout": 0.3}, "base.json")
    path = json_file(tmp_path, {"base": "base.json", "num_units": 9, "cell": "ntm"})
    assert config.read_json(path) == {"num_units": 9, "dropout": 0.3, "cell": "ntm"}
    hparams = config.make({"dropout": 0.1}, path)
    assert (hparams.num_units, hparams.dropout, hparams.cell) == (9, 0.1, "ntm")
    config.save(hparams, tmp_path / "saved.json")
    saved = json.loads((tmp_path / "saved.json").read_text())
    assert list(saved) == list(FIELDS)


@pytest.mark.parametrize(
    "name", ["../base.json", "", ".", "..", "a/base.json", "/base.json", 3, None]
)
def test_a_base_is_a_file_of_the_same_directory(tmp_path, name):
    json_file(tmp_path, {}, "base.json")
    (tmp_path / "a").mkdir()
    json_file(tmp_path / "a", {}, "base.json")
    path = json_file(tmp_path / "a", {"base": name})
    with pytest.raises(
        UsageError, match="base: expected the name of a file in the same dir"
    ) as error:
        config.read_json(path)
    assert str(error.value).startswith(f"{path}: ") and str(error.value).endswith(repr(name))


def test_a_base_that_is_missing_or_has_a_base_or_a_wrong_value_is_refused_by_name(tmp_path):
    path = json_file(tmp_path, {"base": "base.json"})
    with pytest.raises(UsageError) as error:
        config.read_json(path)
    assert str(error.value) == f"{path}: its base {tmp_path / 'base.json'} does not exist"
    base = json_file(tmp_path, {"base": "h.json"}, "base.json")
    with pytest.raises(UsageError) as error:
        config.read_json(path)
    assert str(error.value) == f"{base} is the base of {path} and cannot have a base itself"
    json_file(tmp_path, {"num_unit": 1}, "base.json")
    with pytest.raises(UsageError, match=f"^{base}: unknown key 'num_unit'"):
        config.read_json(path)
    with pytest.raises(UsageError, match="unknown key 'base'"):
        config.make({"base": "base.json"})


def test_chosen_settings_are_the_main_ones_and_those_that_are_no_defaults():
    values = config.chosen(config.make({"num_units": 32, "cell": "ntm", "memory_hops": 2}))
    assert values.pop("memory_hops") == 2
    assert (values["cell"], values["num_units"], values["dropout"]) == ("ntm", 32, 0.2)
    assert len(values) < 15 and "train_prefix" not in values and "beam_width" not in values

"""The one configuration record: frozen fields, strict flat JSON, flags made from the fields.

Keys carry tensorflow/nmt's names where the meaning is the same. The fields common to all
models are declared in `tfmann.hparams_fields`; a memory cell declares its own in its own file, as
a literal dictionary `HPARAMS`, which is read here without importing TensorFlow, and names the file
that has those of its family.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tfmann import temporary
from tfmann.errors import UsageError, UserError
from tfmann.hparams_fields import Field, core_fields

_CELLS = Path(__file__).parent / "cells"
_COLDEST = 1e-6  # logits are divided by it, in float32


def _literal(tree: ast.Module | ast.ClassDef, name: str) -> Any:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in node.targets
        ):
            return ast.literal_eval(node.value)
    return None


def declared_cells() -> dict[str, dict[str, Field]]:
    """Reads what each file of `tfmann/cells` declares: cell name -> its own fields.

    A file declares a cell by a module-level string `NAME` and, if it has fields of its own, a
    literal `HPARAMS = {"key": {"default": ..., "help": ..., "minimum": ..., "choices": ...}}`.
    `SHARED_HPARAMS = ("two_gru",)` adds those of `cells/two_gru.py`, which is no cell.
    """
    cells = {}
    for path in sorted(_CELLS.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        name = _literal(tree, "NAME")
        if name is not None:
            own = _literal(tree, "HPARAMS") or {}
            for family in reversed(_literal(tree, "SHARED_HPARAMS") or ()):
                shared = ast.parse((_CELLS / f"{family}.py").read_text(encoding="utf-8"))
                own = {**_literal(shared, "HPARAMS"), **own}
            cells[name] = {key: Field(kind="architecture", **spec) for key, spec in own.items()}
    return cells


def _declaration(name: str) -> tuple[Path, ast.Module]:
    for path in sorted(_CELLS.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if _literal(tree, "NAME") == name:
            return path, tree
    raise UsageError(f"no cell is called {name!r}")


def cell_module(name: str) -> str:
    """The module that declares the cell `name`."""
    return f"tfmann.cells.{_declaration(name)[0].stem}"


def _attribute(name: str, attribute: str, otherwise: Any) -> Any:
    """What the class of the cell `name` sets a literal attribute to, read without importing it."""
    classes = [node for node in _declaration(name)[1].body if isinstance(node, ast.ClassDef)]
    values = [_literal(node, attribute) for node in classes]
    return next((value for value in values if value is not None), otherwise)


def has_alignments(name: str) -> bool:
    """Whether the cell `name` attends to the source: what its class says as `needs_annotations`."""
    return _attribute(name, "needs_annotations", True)


def document_memory(name: str) -> str:
    """What the cell `name` looks at of the sentences before: "", "history" or "cache"."""
    return _attribute(name, "document_memory", "")


def history_size(name: str) -> int:
    """P, how many source sentences before its own the cell `name` looks at; 0 without a history."""
    return _attribute(name, "history_size", 0)


def require_alignments(cell: str, what: str) -> None:
    """Raises UsageError where `what` needs alignments and the cell has none."""
    if not has_alignments(cell):
        raise UsageError(
            f"{what} needs alignments with the source, and the cell {cell!r} has no alignments: "
            "it knows the source by its memory alone"
        )


def _all_fields() -> dict[str, Field]:
    cells = declared_cells()
    fields = dict(core_fields(cell_names=tuple(cells)))
    for name, own in cells.items():
        for key, field in own.items():
            if key in fields and fields[key] != field:
                raise ValueError(f"cells/{name}.py declares {key!r} unlike another file does")
            fields[key] = field
    return fields


FIELDS: Mapping[str, Field] = _all_fields()

_Record = dataclasses.make_dataclass(
    "_Record",
    [(key, Any, dataclasses.field(default=field.default)) for key, field in FIELDS.items()],
    namespace={"__post_init__": lambda self: None},  # called only if it is there by now
    frozen=True,
)


class HParams(_Record):  # type: ignore[misc, valid-type]
    """All settings of a run, immutable and checked; results never live here.

    Raises:
      UsageError: a value has the wrong type, is out of range, or two settings cannot go together.
    """

    def __post_init__(self) -> None:
        """Checks every value, then the combinations."""
        for key, field in FIELDS.items():
            object.__setattr__(self, key, field.check(key, getattr(self, key)))
        _check_combinations(self)

    def replace(self, **changes: Any) -> HParams:
        """Returns a copy with some values changed; unknown keys are errors."""
        refuse_unknown(changes, where="replace()")
        return dataclasses.replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Returns every key with its value, in the order of declaration."""
        return {key: getattr(self, key) for key in FIELDS}

    @property
    def encoder_layers(self) -> int:
        """Number of encoder layers: `num_encoder_layers`, or `num_layers`."""
        return self.num_encoder_layers or self.num_layers

    @property
    def decoder_layers(self) -> int:
        """Number of decoder layers: `num_decoder_layers`, or `num_layers`."""
        return self.num_decoder_layers or self.num_layers

    @property
    def final_states(self) -> int:
        """How many states the encoder ends in: one per layer and direction, none if it has none."""
        if self.encoder_type == "memory":
            return 0
        return max(2, self.encoder_layers) if self.encoder_type == "bi" else self.encoder_layers

    @property
    def length_penalty_choices(self) -> tuple[float, ...]:
        """`length_penalty_weights` as numbers; none of a search that ranks by other things too."""
        if self.infer_mode != "beam_search" or self.coverage_penalty_weight:
            return ()
        return tuple(map(float, filter(None, self.length_penalty_weights.split(","))))

    @property
    def embedding_width(self) -> int:
        """E: `embedding_size`, or `num_units`."""
        return self.embedding_size or self.num_units


def refuse_unknown(keys: Iterable[str], where: str) -> None:
    """Raises UsageError for the first key that is no hyper-parameter, with the nearest name."""
    for key in keys:
        if key not in FIELDS:
            near = difflib.get_close_matches(key, FIELDS, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise UsageError(f"{where}: unknown key {key!r}{hint}")


def _check_combinations(h: HParams) -> None:
    for broken, message in (*_rules_of_models(h), *_rules_of_searches(h)):
        if broken:
            raise UsageError(message)
    if h.encoder_type == "memory" and has_alignments(h.cell):
        raise UsageError(
            f"encoder_type='memory' lets the cell read the source itself, and the cell {h.cell!r} "
            "cannot: it needs an encoder's annotations"
        )
    for key in ("coverage_penalty_weight", "eos_attention_weight", "replace_unk"):
        if getattr(h, key):
            require_alignments(h.cell, f"{key}={getattr(h, key)}")


def _rules_of_models(h: HParams) -> list[tuple[Any, str]]:
    return [
        (
            h.encoder_type == "bi" and h.encoder_layers % 2 and h.encoder_layers != 1,
            f"num_encoder_layers={h.encoder_layers} with encoder_type='bi': L layers are two "
            "stacks of L/2, so give an even number (or 1 for one layer each way)",
        ),
        (
            h.subword_option == "spm" and not h.subword_model,
            "subword_option='spm' needs subword_model, the SentencePiece model file",
        ),
        (
            h.src is not None and h.src == h.tgt,
            f"src and tgt are both {h.src!r}: they are the suffixes of different files",
        ),
        (
            h.eos_attention_weight and not h.append_source_eos,
            "eos_attention_weight is about the attention to the source's </s>: it needs "
            "append_source_eos=true",
        ),
        (
            h.gradient_accumulation > 1 and h.cell == "cache",
            "cell='cache' writes a document's sentences in their order, which "
            "gradient_accumulation would cut up: set it to 1",
        ),
        (
            h.num_sampled_softmax and h.label_smoothing,
            "label_smoothing gives mass to every word, and num_sampled_softmax="
            f"{h.num_sampled_softmax} looks at some: set one of them to 0",
        ),
        (
            h.num_sampled_softmax and h.cell == "cache" and h.cache_fusion == "shallow",
            "cache_fusion='shallow' mixes distributions over all words: it needs "
            "num_sampled_softmax=0",
        ),
        (
            h.cell in ("ntm", "mad") and h.head_start == "tape" and h.shift_range < 1,
            "head_start='tape' moves a slot a step: it needs shift_range of at least 1",
        ),
        (
            h.cell == "cache" and h.cache_matching == "nothing" and h.cache_fusion == "shallow",
            "cache_matching='nothing' leaves cache_fusion='shallow' no words to mix: set "
            "cache_fusion='deep'",
        ),
        (
            h.attention_score != "dot" and h.cell == "luong" and "bahdanau" in h.attention,
            f"attention_score={h.attention_score!r} is about dot products, and "
            f"attention={h.attention!r} is additive: set one of them otherwise",
        ),
        (
            h.top_dropout and h.encoder_type == "memory",
            "top_dropout is about the encoder's last layer, and encoder_type='memory' has none",
        ),
    ]


def _rules_of_searches(h: HParams) -> list[tuple[Any, str]]:
    return [
        (
            h.infer_mode == "sample" and h.sampling_temperature < _COLDEST,
            f"infer_mode='sample' needs sampling_temperature of at least {_COLDEST}: infer_mode="
            "'greedy' takes the most probable word",
        ),
        (
            h.infer_mode == "beam_search" and h.beam_width < 1,
            "infer_mode='beam_search' needs beam_width of at least 1",
        ),
        (
            h.infer_mode == "greedy" and h.num_translations_per_input > 1,
            "num_translations_per_input above 1 needs infer_mode='beam_search' or 'sample'",
        ),
        (
            h.infer_mode == "beam_search" and h.num_translations_per_input > h.beam_width,
            f"num_translations_per_input={h.num_translations_per_input} is more than "
            f"beam_width={h.beam_width}",
        ),
        (
            not re.fullmatch(r"([0-9]+(\.[0-9]+)?(,|$))*", h.length_penalty_weights),
            f"length_penalty_weights={h.length_penalty_weights!r}: expected numbers of at least 0 "
            "between commas, such as 0,0.6,1",
        ),
        (
            0 < h.tgt_max_len_infer <= h.tgt_min_len_infer,
            f"tgt_min_len_infer={h.tgt_min_len_infer} leaves no room for </s> below "
            f"tgt_max_len_infer={h.tgt_max_len_infer}: give a smaller one",
        ),
        (
            h.replace_unk and h.subword_option,
            f"replace_unk is about words, and subword_option={h.subword_option!r} leaves hardly "
            "any unknown",
        ),
    ]


def read_json(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a flat JSON object of hyper-parameters; keys are checked, values are not yet.

    Raises:
      UsageError: the file is missing, is not JSON, repeats a key, or has an unknown key.
    """

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for key, value in items:
            if key in seen:
                raise UsageError(f"{path}: the key {key!r} stands twice")
            seen[key] = value
        return seen

    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a NUL in the name
        raise UsageError(f"cannot read the hparams file {path}: {error}") from None
    try:
        values = json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise UsageError(f"{path}: expected one flat JSON object, got {type(values).__name__}")
    refuse_unknown(values, where=str(path))
    for key, value in values.items():
        try:
            FIELDS[key].check(key, value)
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from None
    return values


def make(explicit: Mapping[str, Any], path: str | None = None) -> HParams:
    """Explicit values over the JSON file over the defaults."""
    values = read_json(path) if path else {}
    refuse_unknown(explicit, where="command line")
    try:
        return HParams(**{**values, **explicit})
    except UsageError as error:
        raise UsageError(f"{path}: {error}" if path and not explicit else str(error)) from None


def save(hparams: HParams, path: str | os.PathLike[str]) -> None:
    """Writes the record beside `path` and renames it there."""
    content = json.dumps(hparams.as_dict(), indent=2) + "\n"
    try:
        with temporary.file(os.fspath(path)) as stream:
            stream.write(content.encode())
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def changes(saved: Mapping[str, Any], now: HParams) -> list[str]:
    """The settings that are not as they were saved, each as `learning_rate 0.002 -> 0.1`."""
    before = {key: saved.get(key, field.default) for key, field in FIELDS.items()}
    return [
        f"{key} {before[key]} -> {value}"
        for key, value in now.as_dict().items()
        if value != before[key]
    ]


def merge_saved(saved: Mapping[str, Any], explicit: Mapping[str, Any], where: str) -> HParams:
    """Explicit values over those a run was saved with; the architecture must stay as it was.

    Raises:
      UsageError: an architecture key differs from the saved one, or a key is unknown.
    """
    refuse_unknown(explicit, where="settings")
    changed = [
        f"{key}={explicit[key]!r} (saved: {saved.get(key, FIELDS[key].default)!r})"
        for key in explicit
        if FIELDS[key].kind == "architecture"
        and explicit[key] != saved.get(key, FIELDS[key].default)
    ]
    if changed:
        raise UsageError(
            f"{where} holds a model that was trained otherwise: {', '.join(changed)}. "
            "Use another out_dir, or leave these settings as they were."
        )
    return make({**saved, **explicit})

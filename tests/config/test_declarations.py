"""The declared settings and cells: complete, typed, explained, and declared once."""

import ast
import importlib
import inspect
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import tfmann
from tfmann import config
from tfmann.config import CELLS, FIELDS, HParams, cells, fields
from tfmann.config.cells import CellSpec
from tfmann.config.memory_options import CellSettings
from tfmann.errors import UsageError

PACKAGE = Path(tfmann.__file__).parent


def test_settings_and_cells_are_known_without_tensorflow():
    program = (
        "import sys, tfmann.config, tfmann.nmt\n"
        "loaded = {'tensorflow', 'keras', 'numpy'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=PACKAGE.parent
    )
    assert done.returncode == 0, done.stderr


def cell_classes():
    """Names of the cells by module, from another source: the concrete cells in `cells/`."""
    from tfmann.cells.base import DecoderCell

    classes = {}
    for path in (PACKAGE / "cells").glob("*.py"):
        module = importlib.import_module(f"tfmann.cells.{path.stem}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, DecoderCell):
                if value.__module__ == module.__name__ and not inspect.isabstract(value):
                    classes[path.stem] = value.__name__
    return classes


def test_the_registry_has_every_cell():
    registered = {spec.module: spec.class_name for spec in CELLS.values()}
    assert registered == cell_classes()
    assert FIELDS["cell"].choices == tuple(CELLS)


def test_the_settings_of_every_cell_are_settings_of_a_run():
    for name, spec in CELLS.items():
        assert issubclass(HParams, spec.options), name
    assert list(config.fields_of(CELLS["luong"].options)) == [
        "attention_score", "attention_gain_start", "attention", "attention_tanh"
    ]  # fmt: skip


def test_an_unknown_cell_is_refused_with_the_nearest_name():
    with pytest.raises(UsageError, match="no cell is called 'loung'; did you mean 'luong'"):
        config.cell_spec("loung")


def test_the_type_of_every_setting_is_seen_by_mypy(tmp_path):
    program = tmp_path / "reader.py"
    program.write_text(
        "from tfmann.config import Architecture, HParams\n"
        "def width(hparams: Architecture) -> int:\n"
        "    return hparams.num_units\n"
        "def reader(hparams: HParams) -> float:\n"
        "    return width(hparams) + hparams.num_unitz + hparams.shift_range\n"
        "HParams(num_units='4')\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file=", "--follow-imports=silent", str(program)],
        capture_output=True, text=True, cwd=PACKAGE.parent,
    )  # fmt: skip
    lines = [line.partition(": ")[2] for line in done.stdout.splitlines()[:-1]]
    assert len(lines) == 2, done.stdout + done.stderr
    assert '"HParams" has no attribute "num_unitz"' in lines[0]
    assert 'expected "int"' in lines[1]


def test_every_field_explains_itself_and_its_default_is_allowed():
    for key, field in FIELDS.items():
        assert field.check(key, field.default) == field.default
        assert field.help.endswith("."), key
        assert field.kind in ("architecture", "data", "training", "inference"), key
        if field.choices is not None:
            assert field.type is str and len(set(field.choices)) == len(field.choices), key


def test_no_setting_is_declared_twice():
    """No class repeats the setting of another, and no reader gives a default of its own."""
    declared = [
        key
        for part in HParams.__mro__
        for key in vars(part).get("__annotations__", ())
        if key != "kind"
    ]
    assert sorted(declared) == sorted(FIELDS)
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
                of_settings = ast.unparse(node.args[0]).split(".")[-1] in ("h", "hparams")
                default = len(node.args) > 2 and is_key(node.args[1])
                assert not (of_settings and default), f"{path}:{node.lineno}"
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "get":
                assert len(node.args) < 2 or not is_key(node.args[0]), f"{path}:{node.lineno}"


@dataclass(frozen=True)
class Slots(CellSettings):
    slots: int = fields.field(3, "Slots.")


@dataclass(frozen=True)
class OtherSlots(CellSettings):
    slots: int = fields.field(4, "Slots.")


class Undecorated(CellSettings):
    width: int = fields.field(3, "Width.")


@dataclass(frozen=True)
class Plain(CellSettings):
    depth: int = 3


@pytest.mark.parametrize(
    "bases, message",
    [
        ((OtherSlots, Slots), "setting 'slots' is declared by OtherSlots and by Slots: inherit"),
        ((Undecorated, Slots), r"Undecorated has to be a @dataclass\(frozen=True\): 'width'"),
        ((Plain,), r"Plain: declare 'depth' by field\(default, help\)"),
    ],
)
def test_settings_that_are_not_declared_as_the_others_are_refused(bases, message):
    with pytest.raises(TypeError, match=message):
        fields.check_declarations(dataclass(frozen=True)(type("All", bases, {})))


def test_a_second_entry_of_a_name_and_settings_of_no_run_are_refused():
    luong = ("luong", CellSpec("luong", "LuongCell", CELLS["luong"].options))
    with pytest.raises(TypeError, match="two entries 'luong'"):
        cells._by_name(luong, luong)
    with pytest.raises(TypeError, match="Slots has to be among the bases of CellOptions"):
        cells._by_name(("mine", CellSpec("mine", "MineCell", Slots)))


def is_key(node):
    return isinstance(node, ast.Constant) and node.value in FIELDS

"""The shape of the program, read from its source: floors, sizes, documentation."""

import ast

import pytest
from helpers.package_sources import FILES, PACKAGE, TREES

from tfmann import config

# A module imports from lower floors and from its own package. Modules of the top may import
# each other; that nothing goes round in a circle is a test of its own.
FLOORS = [
    {"errors"},
    {"utils"},
    {"config"},
    {"data", "ops"},
    {"memory", "datasets"},
    {"layers", "synthetic"},
    {"cells"},
    {"models"},
    {"decoding"},
    {"training", "evaluation", "export"},
    {"visualization"},
    {"api"},
    {"papers", "report", "cli", "nmt", "serving", "play"},
]


def module_name(path):
    parts = ("tfmann", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


def imports(path):
    """Modules of ours that a file imports, anywhere in it, as (name, line)."""
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            while name.startswith("tfmann.") and name not in MODULES:
                name = name.rpartition(".")[0]  # a function of a module
            if name in MODULES:
                yield name, node.lineno


def part(name):
    """`tfmann.data.vocab` is of corpus, `tfmann.cli.train` of run."""
    return name.split(".")[1] if "." in name else ""


def floor(name):
    numbers = [number for number, parts in enumerate(FLOORS) if part(name) in parts]
    assert len(numbers) == 1, f"{name}: which floor is it on? Say so in FLOORS"
    return numbers[0]


def test_imports_go_down_only():
    wrong = []
    for name, path in MODULES.items():
        if name in ("tfmann", "tfmann.__main__"):
            continue
        for imported, line in imports(path):
            if imported == "tfmann" or part(imported) == part(name):
                continue
            same_top = floor(imported) == floor(name) == len(FLOORS) - 1
            if floor(imported) >= floor(name) and not same_top:
                wrong.append(f"{path}:{line} imports {imported}")
    assert not wrong, wrong


def test_nothing_imports_itself_in_a_circle():
    graph = {
        name: {imported for imported, _ in imports(path) if imported not in ("tfmann", name)}
        for name, path in MODULES.items()
    }
    done = set()

    def visit(name, above):
        assert name not in above, f"a circle: {' -> '.join([*above, name])}"
        if name not in done:
            for imported in sorted(graph[name]):
                visit(imported, [*above, name])
            done.add(name)

    for name in graph:
        visit(name, [])


def test_the_reader_of_imports_sees_them():
    """Were it blind, the tests above would pass."""
    imported = {module for module, _ in imports(PACKAGE / "nmt.py")}
    assert {
        "tfmann.config",
        "tfmann.errors",
        "tfmann.cli.train",
        "tfmann.cli.predict",
    } <= imported
    assert "tfmann.cells.base" in {module for module, _ in imports(PACKAGE / "cells" / "luong.py")}
    assert len(MODULES) > 40


def imported_names(path):
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def importers(package):
    return {
        str(path.relative_to(PACKAGE))
        for path in FILES
        if any(name.split(".")[0] == package for name in imported_names(path))
    }


def test_addons_are_imported_in_one_place():
    assert importers("tensorflow_addons") == {"decoding/addons.py"}


def test_tensorflow_text_is_imported_in_one_place():
    assert importers("tensorflow_text") == {"data/subword.py"}


def late_tensorflow(name):
    """The modules that are loaded with a module, by imports at the head of files."""
    loaded, waiting = set(), [name]
    while waiting:
        module = waiting.pop()
        if module in loaded or module not in MODULES:
            continue
        loaded.add(module)
        for node in TREES[MODULES[module]].body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [alias.name for alias in node.names]
                if isinstance(node, ast.ImportFrom):
                    names = [node.module, *(f"{node.module}.{alias}" for alias in names)]
                loaded.update(n.split(".")[0] for n in names if not n.startswith("tfmann"))
                waiting.extend(names)
    return loaded


@pytest.mark.parametrize(
    "name",
    [
        "nmt",
        "cli.main",
        "cli.demo",
        "cli.play",
        "cli.serve",
        "play.library",
        "cli.translate",
        "papers.reproduce",
        "data.text_encoder",
        "utils.run_folder",
    ],
)
def test_what_answers_at_once_does_not_load_tensorflow(name):
    loaded = late_tensorflow(f"tfmann.{name}")
    assert not {"tensorflow", "tensorflow_addons", "tensorflow_text", "matplotlib"} & loaded
    assert "tensorflow" in late_tensorflow("tfmann.cli.train")


def concrete_cells():
    """The classes in the registry of cells, with the file that defines each."""
    return {
        spec.class_name: PACKAGE / "cells" / f"{spec.module}.py" for spec in config.CELLS.values()
    }


def test_only_cells_name_a_concrete_cell():
    cells = concrete_cells()
    assert {"LuongCell", "NTMAttentionCell", "RNNSearchCell"} <= set(cells)
    modules = {module_name(path) for path in cells.values()}
    wrong = []
    for path in FILES:
        if path.parent == PACKAGE / "cells":
            continue
        for node in ast.walk(TREES[path]):
            identifiers = {getattr(node, "id", None), getattr(node, "attr", None)}
            if isinstance(node, ast.alias):
                identifiers.add(node.name)
            if identifiers & set(cells):
                wrong.append(f"{path}: {identifiers & set(cells)}")
        wrong += [
            f"{path} imports {imported}" for imported, _ in imports(path) if imported in modules
        ]
    assert not wrong, wrong


def test_a_cell_knows_no_other_cell():
    cells = {module_name(path) for path in concrete_cells().values()}
    for name in cells:
        assert not cells & {imported for imported, _ in imports(MODULES[name])} - {name}, name


def functions(tree):
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_files_and_functions_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
    for node in functions(TREES[path]):
        lines = node.end_lineno - node.lineno + 1
        assert lines <= 60, f"{path}:{node.lineno}: {node.name} has {lines} lines"


def public_definitions(body):
    """Public functions and classes of a module, and public methods of its public classes."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public_definitions(node.body)


def overloads_or_sets(node):
    """Returns whether a definition repeats another: @overload, @x.setter."""
    names = {
        getattr(decorator, "id", getattr(decorator, "attr", ""))
        for decorator in node.decorator_list
    }
    return bool(names & {"overload", "setter"})


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_is_public_is_documented(path):
    assert ast.get_docstring(TREES[path]), path
    for node in public_definitions(TREES[path].body):
        if not overloads_or_sets(node):
            assert ast.get_docstring(node), f"{path}:{node.lineno}: {node.name}"


def test_every_module_can_be_read_by_python_3_9():
    for path in FILES:
        ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
        postponed = any(
            isinstance(node, ast.ImportFrom) and node.module == "__future__"
            for node in TREES[path].body
        )
        annotated = any(
            isinstance(node, ast.AnnAssign) or getattr(node, "returns", None) is not None
            for node in ast.walk(TREES[path])
        )
        assert postponed or not annotated, f"{path}: annotations are not postponed"

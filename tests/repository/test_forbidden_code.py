"""Code that could run a program from a file is nowhere in the package."""

import ast

import pytest
from helpers.package_sources import FILES, TREES

FORBIDDEN_MODULES = {"pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "yaml"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_METHODS = {
    "system", "popen", "load_model", "load_weights", "model_from_json", "extractall",
    "unsafe_load",
}  # fmt: skip
FORBIDDEN_ARGUMENTS = {"allow_pickle": True, "shell": True}


def dangers(tree):
    """Finds whatever could run code from a file, as (line, name)."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            for name in names:
                if name.split(".")[0] in FORBIDDEN_MODULES:
                    yield node.lineno, name
        elif isinstance(node, ast.Call):
            if getattr(node.func, "id", None) in FORBIDDEN_CALLS:
                yield node.lineno, node.func.id
            if getattr(node.func, "attr", None) in FORBIDDEN_METHODS:
                yield node.lineno, node.func.attr
            for keyword in node.keywords:
                if keyword.arg in FORBIDDEN_ARGUMENTS and not (
                    isinstance(keyword.value, ast.Constant) and keyword.value.value is False
                ):
                    yield node.lineno, keyword.arg


def test_nothing_runs_code_from_files():
    wrong = [f"{path}:{line}: {danger}" for path in FILES for line, danger in dangers(TREES[path])]
    assert not wrong, wrong


@pytest.mark.parametrize(
    "program",
    [
        "import pickle",
        "from pickle import load",
        "import yaml.constructor",
        "eval(text)",
        "exec(text)",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=maybe)",
        "subprocess.run(text, shell=True)",
        "os.system(text)",
        "archive.extractall(folder)",
        "tf.keras.models.load_model(path)",
    ],
)
def test_dangers_are_seen(program):
    assert list(dangers(ast.parse(program)))


@pytest.mark.parametrize(
    "program", ["ast.literal_eval(t)", "np.load(p, allow_pickle=False)", "re.compile(p)"]
)
def test_what_is_no_danger_is_not(program):
    assert not list(dangers(ast.parse(program)))

"""The files of the package and their syntax trees."""

import ast
from pathlib import Path

import tfmann

PACKAGE = Path(tfmann.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}

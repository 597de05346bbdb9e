#!/bin/sh
# Asks the Python advisory database about every version of constraints.txt; fails if one is known to
# be vulnerable.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$(sh scripts/find_python.sh)" -m venv "$work"
"$work/bin/python" -m pip install --quiet 'pip-audit>=2.9,<3'
# Packages that the database does not know have not been judged: --strict says so.
"$work/bin/pip-audit" -r constraints.txt --no-deps --disable-pip --strict

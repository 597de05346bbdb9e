#!/bin/sh
# Checks every version of requirements.lock against the Python advisory database; fails if one has a
# known vulnerability.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$(sh scripts/find_python.sh)" -m venv "$work"
"$work/bin/python" -m pip install --quiet 'pip-audit>=2.9,<3'
# --strict: a package that the database does not know is an error, not a pass.
"$work/bin/pip-audit" -r requirements.lock --no-deps --disable-pip --strict

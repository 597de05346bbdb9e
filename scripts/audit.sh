#!/bin/sh
# Checks every version of requirements.lock, of all Pythons, against the Python advisory database;
# fails if one has a known vulnerability.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$(sh scripts/find_python.sh)" -m venv "$work"
"$work/bin/python" -m pip install --quiet 'pip-audit>=2.9,<3'
# pip-audit looks only at its own Python's versions, and at one of a package: the first of each
# package are in a file, the second in another.
awk -v work="$work" '/^[^# ]+==/ {
    split($1, pin, "==")
    number = ++count[pin[1]]
    print $1 >(work "/pins" number ".txt")
}' requirements.lock
status=0
for pins in "$work"/pins*.txt; do
    # --strict: a package that the database does not know is an error, not a pass.
    "$work/bin/pip-audit" -r "$pins" --no-deps --disable-pip --strict || status=1
done
exit $status

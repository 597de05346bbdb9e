#!/bin/sh
# Prints the versions that requirements.lock has for Python 3.11 of the packages given, as
# constraints for pip: later Pythons, for which there is no lock, check with the same tools.
#
#     sh scripts/pins.sh mypy ruff
set -eu

for name in "$@"; do
    # A version for 3.11 comes after those for older Pythons.
    sed -n "s/^\($name==[^ ]*\).*/\1/p" requirements.lock | tail -n 1
done

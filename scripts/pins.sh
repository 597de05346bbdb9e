#!/bin/sh
# Prints the versions of requirements.lock without hashes, as constraints for pip: packages that
# the lock does not have, such as the CUDA libraries, can then be installed with it.
set -eu

sed -n '/^[A-Za-z0-9]/s/ *\\$//p' requirements.lock

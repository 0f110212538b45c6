#!/bin/sh
# Makes the virtual environment that the make targets run in, from the pinned versions. Needs a Python 3.11-3.13 and nothing else.
# usage: tools/setup.sh DIRECTORY [PYTHON]
set -eu

directory=$1
wanted=${2:-}

say() { printf '%s\n' "$*" >&2; }

fits() { # does this interpreter run, and is its version one of ours?
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

find_python() {
    for candidate in ${wanted:-python3.13 python3.12 python3.11 python3 python}; do
        if fits "$candidate"; then
            # that of a virtual environment is gone with it, and this may be the one that is made anew
            "$candidate" -c 'import sys; print(getattr(sys, "_base_executable", "") or sys.executable)'
            return
        fi
    done
    say "fencepost: expected Python 3.11, 3.12 or 3.13, saw ${wanted:-$(python3 --version 2>&1 || true)};" \
        "install one of them, or name it: make PYTHON=/path/to/python3.12"
    exit 2
}

python=$(find_python)
rm -rf "$directory"
if ! "$python" -m venv "$directory" >"${TMPDIR:-/tmp}/fencepost-venv.$$" 2>&1; then
    say "fencepost: expected $python to make a virtual environment, saw: $(tail -n 1 "${TMPDIR:-/tmp}/fencepost-venv.$$");" \
        "on Debian and Ubuntu install the package python3-venv"
    exit 2
fi
rm -f "${TMPDIR:-/tmp}/fencepost-venv.$$"

say "Setting up $directory with $("$python" --version) (once; a minute or two)"
PIP_CONSTRAINT=$(pwd)/constraints.txt
export PIP_CONSTRAINT
# --no-compile: two thirds of the libraries' modules are never imported; the imports below write the others' bytecode.
"$directory/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check setuptools
"$directory/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check --no-build-isolation --editable '.[all,dev]'
"$directory/bin/python" -m pip check --disable-pip-version-check >&2
"$directory/bin/python" -m fencepost.checkers.compile_all
"$directory/bin/python" -c 'import fencepost.impl.log.batch.compiled_walk'
"$directory/bin/python" -c 'import fencepost.mining.mine, fencepost.wire, hypothesis, kazoo.client, pyspark.sql, pytest'

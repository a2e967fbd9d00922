#!/bin/sh
# Makes the virtual environment: scripts/venv.sh PYTHON FOLDER.
# Debian keeps `venv` and `pip` in a package of their own; where they are missing and we may, it is installed.
set -eu
python=$1
folder=$2

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "fleet needs Python 3.11 or newer; $python is $("$python" --version 2>&1). Try: make PYTHON=python3.11" >&2
    exit 1
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing python3-venv"
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
    else
        echo "$python has no venv module; on Debian and Ubuntu: sudo apt-get install python3-venv" >&2
        exit 1
    fi
fi
echo "making $folder (once; about a minute)"
"$python" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --editable '.[dev,lab]'

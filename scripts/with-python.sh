#!/bin/sh
# Runs its arguments with the best Python at hand: $PYTHON, else the first that is 3.11 or newer, else one that uv has.
set -u
good='import sys; sys.exit(sys.version_info < (3, 11))'
for python in "${PYTHON:-}" python3 python3.13 python3.12 python3.11 python3.14 python; do
    if [ -n "$python" ] && command -v "$python" >/dev/null 2>&1 && "$python" -c "$good" >/dev/null 2>&1; then
        exec "$python" "$@"
    fi
done
if command -v uv >/dev/null 2>&1; then
    exec uv run --no-project --quiet --python '>=3.11' python "$@"
fi
echo "Limpet needs Python 3.11 or newer, and found none." >&2
echo "Install one with your system's package manager (Debian, Ubuntu: python3 and python3-venv; macOS: python@3.12" >&2
echo "of Homebrew) or install uv, then run this again. PYTHON=/path/to/python chooses one by hand." >&2
exit 2

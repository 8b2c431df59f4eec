# Sourced by the scripts beside it: one virtual environment per purpose, made once and made again when pyproject changes.
# Needs Python 3.11 or newer and a package index; no root, no Docker, no key.

set -eu
top=$(CDPATH="" cd -- "$(dirname -- "$0")" && pwd)
while [ ! -f "$top/pyproject.toml" ]; do top=$(dirname -- "$top"); done
cd "$top"

find_python() {
  for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11 python; do
    [ -n "$candidate" ] || continue
    if command -v "$candidate" >/dev/null 2>&1 &&
      "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return 0
    fi
  done
  echo "error: Python 3.11 or newer is needed; set PYTHON to one" >&2
  return 1
}

# make_env FOLDER EXTRAS: installs this checkout, editable, with the extras; prints progress on stderr.
make_env() {
  folder=$1
  extras=$2
  stamp="$folder/.dagward-stamp"
  python=$(find_python)
  want="$extras $("$python" -c 'import hashlib,sys; print(sys.version.split()[0], hashlib.sha256(open("pyproject.toml","rb").read()).hexdigest())')"
  if [ -x "$folder/bin/python" ] && [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then
    return 0
  fi
  command -v git >/dev/null 2>&1 || { echo "error: git is needed" >&2; return 1; }
  echo "making $folder (installs dagward[$extras]; takes about half a minute) ..." >&2
  rm -rf "$folder"
  "$python" -m venv "$folder"
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --editable ".[$extras]" >&2
  printf '%s' "$want" >"$stamp"
  echo "ready" >&2
}

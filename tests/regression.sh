#!/usr/bin/env bash
# The one regression entry: all tests, the linters, and a word on each at the end.
#
#   tests/regression.sh [--full] [--quick] [--python NAME] [-- PYTEST-ARGUMENTS]
#
#   --full          the slow form too (BATON_FULL=1), and in the end how much the long tests tried
#   --quick         pytest alone: for a second interpreter, or between two edits
#   --python NAME   an interpreter (3.12, python3.12 or a path) instead of BATON_PYTHON or python3
#
# Needs Python 3.10 or newer with venv, and git. What the tests need beyond that goes into a private environment, made
# once per interpreter and list of requirements, beside those of ./baton (BATON_CACHE).
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
python=${BATON_PYTHON:-python3}
quick=
while [ $# -gt 0 ]; do
    case $1 in
        --full) export BATON_FULL=1 ;;
        --quick) quick=1 ;;
        --python) python=${2:?--python needs a name}; shift ;;
        --python=*) python=${1#*=} ;;
        --) shift; break ;;
        -h | --help) sed -n '2,/^set/{s/^# \{0,1\}//;/^set/!p;}' "${BASH_SOURCE[0]}"; exit 0 ;;
        *) echo "error: unknown option $1 (pytest's own go after --)" >&2; exit 2 ;;
    esac
    shift
done
case $python in
    [0-9]*) python=python$python ;;
    */*) python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python") ;; # before the change of folder below
esac

cd "$root" || exit 1
unset BATON_PYTHON PYTHONPATH PYTHONHOME # the choice is made; nothing but this checkout is under test
test_python=$("$python" "$root/baton" --environment=mcp,test) || exit 1
export BATON_CACHE=${test_python%/*/bin/*} # the launcher's own test may reuse what is there
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
# Compiled once, for all the processes that tests start, and not beside the sources: a second interpreter at the same time
# and a read-only checkout are both fine.
export PYTHONPYCACHEPREFIX=$scratch/__pycache__
unset PYTHONDONTWRITEBYTECODE

steps=()
failed=0
if [ -n "${BATON_FULL:-}" ] && [ -z "${BATON_FIGURES:-}" ]; then
    export BATON_FIGURES=$scratch/figures
    mkdir "$BATON_FIGURES"
fi
step() { # step NAME COMMAND...: run it, remember how it went
    local name=$1 begun=$SECONDS result=ok
    shift
    printf '\n== %s\n' "$name"
    "$@" || { result=FAILED; failed=1; }
    steps+=("$(printf '%-10s %-6s %4d s' "$name" "$result" $((SECONDS - begun)))")
}

# One worker more than processors: tests wait for git and for agents much of the time.
workers=$(($(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1))
export BATON_FAILED=$scratch/failed
: >"$BATON_FAILED"
run_tests() {
    local code=0
    "$test_python" -m pytest -q -n "$workers" --dist worksteal -p no:cacheprovider "$@" || code=$?
    [ "$code" = 1 ] || return "$code" # 1: tests ran to the end, and some failed
    # Many at once on a busy machine is itself a strain. A few that failed are tried once more, each by itself, and named:
    # one that fails again is broken, one that passes is unsteady and wants to be looked at. A crash stays a failure.
    local again=()
    mapfile -t again < <(sort -u "$BATON_FAILED")
    [ ${#again[@]} -ge 1 ] && [ ${#again[@]} -le 5 ] || return 1
    printf '\n== once more, by itself\n'
    BATON_FAILED='' "$test_python" -m pytest -q -p no:cacheprovider "${again[@]}" || return 1
    unsteady=("${again[@]}")
}
unsteady=()
step pytest run_tests "$@"
unset BATON_FAILED
if [ -z "$quick" ]; then
    step ruff "$test_python" -m ruff check --no-cache .
    step mypy "$test_python" -m mypy --cache-dir=/dev/null
    if [ -e adapters/baton_mcp/smoke.py ]; then
        step mcp "$test_python" adapters/baton_mcp/smoke.py
    fi
fi

printf '\n== summary: %s, %s\n' "$("$test_python" -V)" "$(git --version)"
printf '%s\n' "${steps[@]}"
[ ${#unsteady[@]} = 0 ] || printf 'unsteady: %s\n' "${unsteady[@]}"
[ -z "${BATON_FIGURES:-}" ] || "$test_python" tests/figures.py "$BATON_FIGURES"
[ "$failed" = 0 ] && echo "all good" || echo "FAILED"
exit "$failed"

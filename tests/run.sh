#!/usr/bin/env bash
# Runs both rings of tests, and says what came of each. A ring that can't run is an error.
# Arguments: a marker expression, that is which of their tests; how many workers the second ring has; all others go to
# pytest. Tests that mostly wait for a shared control plane need many workers; those with one of their own, few.
# The first ring takes the processors' time that the second leaves: tests on an API server wait often. All that fails
# in either is told.
set -euo pipefail
cd "$(dirname "$0")/.."

chosen=$1
workers=$2
shift 2
ran=()
failed=0

ring() {
    local outcome=passed
    printf '\n=== %s\n' "$1"
    "${@:2}" || outcome=failed failed=1
    ran+=("$1: $outcome after $SECONDS s")
}

first_ring() {
    local status=0
    wait "$first" || status=$?
    cat "$said"
    return "$status"
}

finish() {
    kill %1 2>/dev/null || true  # a ring in the background goes on by itself when the rest is interrupted
    rm -f "$said"
    printf '\n=== Rings run\n'
    printf '%s\n' "${ran[@]:-none}"
}

.venv/bin/python -m tests.programs

said=$(mktemp)
nice -n 5 .venv/bin/pytest -q -m "not cluster and $chosen" -n 3 --dist loadscope --no-loadscope-reorder \
    --durations 20 "$@" >"$said" 2>&1 &
first=$!
trap finish EXIT
trap 'exit 130' INT
# Many control planes run at once: but for the API servers, each of their programs takes one processor. They look for
# garbage seldom, as there is memory enough.
ring "Ring 2, on a real API server, Job controller and scheduler" \
    env GOMAXPROCS=1 GOGC=1000 .venv/bin/pytest -q -m "cluster and $chosen" tests/chart tests/cluster tests/sandbox \
    -n "$workers" --dist loadscope --no-loadscope-reorder --durations 20 "$@"
ring "Ring 1, engine, models and parts, no cluster" first_ring
exit "$failed"

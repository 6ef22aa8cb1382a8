#!/usr/bin/env bash
# Runs every ring of tests that `make test` promises, and says which. A ring that can't run is an error.
#
# Both run at once: ring 2 mostly waits for what other processes do, and ring 1 computes meanwhile. Ring 1 is
# shown first, and ring 2 also if it fails.
set -euo pipefail
set -m # ring 2 is not interrupted with what is shown
cd "$(dirname "$0")/.."

ran=()
failed=0
log=$(mktemp)

ring() {
    local outcome=passed
    printf '\n=== %s\n' "$1"
    "${@:2}" || outcome=failed failed=1
    ran+=("$1: $outcome after $SECONDS s")
}

shown() {
    tail --pid="$second" --lines=+1 --follow "$log"
    wait "$second"
}

ended() {
    kill "$second" 2>/dev/null || true # it was interrupted
    rm -f "$log"
    printf '\n=== Rings run\n'
    printf '%s\n' "${ran[@]:-none}"
}

.venv/bin/python -m tests.programs

.venv/bin/pytest -q -m cluster tests/chart tests/cluster tests/sandbox \
    -n 5 --dist loadscope --no-loadscope-reorder --durations 20 "$@" >"$log" 2>&1 &
second=$!
trap ended EXIT

ring "Ring 1, engine, models and parts, no cluster" \
    nice -n 5 .venv/bin/pytest -q -m "not cluster" -n 2 --dist load --durations 20 "$@"
ring "Ring 2, on a real API server, Job controller and scheduler" shown
exit "$failed"

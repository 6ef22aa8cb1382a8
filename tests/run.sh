#!/usr/bin/env bash
# Runs every ring of tests that `make test` promises, and says which. A ring that can't run is an error.
#
# Both run at once: ring 2 mostly waits for what other processes do, and ring 1 computes meanwhile. Ring 1 is
# shown first; if it fails, ring 2 is given up.
set -euo pipefail
set -m # a job in the background may be interrupted then
cd "$(dirname "$0")/.."

ran=()
log=$(mktemp)

ring() {
    printf '\n=== %s\n' "$1"
    "${@:2}"
    ran+=("$1: passed after $SECONDS s")
}

shown() {
    tail --pid="$second" --lines=+1 --follow "$log"
    wait "$second"
}

ended() {
    kill -INT "$second" 2>/dev/null && wait "$second" || true
    rm -f "$log"
    printf '\n=== Rings run\n'
    printf '%s\n' "${ran[@]:-none}"
}

.venv/bin/pytest -q -m cluster tests/chart tests/cluster tests/sandbox \
    -n 5 --dist loadscope --no-loadscope-reorder --durations 20 "$@" >"$log" 2>&1 &
second=$!
trap ended EXIT

ring "Ring 1, engine, models and parts, no cluster" \
    nice -n 5 .venv/bin/pytest -q -m "not cluster" -n 2 --dist load --durations 20 "$@"
ring "Ring 2, on a real API server, Job controller and scheduler" shown

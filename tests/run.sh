#!/usr/bin/env bash
# Runs every ring of tests that `make test` promises, and says which. A ring that can't run is an error.
# The second ring runs also if the first one fails: all that fails is told at once.
set -euo pipefail
cd "$(dirname "$0")/.."

ran=()
failed=0

ring() {
    local began=$SECONDS outcome=passed
    printf '\n=== %s\n' "$1"
    "${@:2}" || outcome=failed failed=1
    ran+=("$1: $outcome in $((SECONDS - began)) s")
}

trap 'printf "\n=== Rings run\n"; printf "%s\n" "${ran[@]:-none}"' EXIT

.venv/bin/python -m tests.programs

ring "Ring 1, engine, models and parts, no cluster" \
    .venv/bin/pytest -q -m "not cluster" -n 2 --dist load --durations 20 "$@"
# Many control planes run at once: but for the API servers, each of their programs takes one processor.
ring "Ring 2, on a real API server, Job controller and scheduler" \
    env GOMAXPROCS=1 .venv/bin/pytest -q -m cluster tests/chart tests/cluster tests/sandbox \
    -n 5 --dist loadscope --no-loadscope-reorder --durations 20 "$@"
exit "$failed"

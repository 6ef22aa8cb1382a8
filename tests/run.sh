#!/usr/bin/env bash
# Runs every ring of tests that `make test` promises, and says which. A ring that can't run is an error.
set -euo pipefail
cd "$(dirname "$0")/.."

ring() {
    local began=$SECONDS name=$1
    shift
    printf '\n=== %s\n' "$name"
    "$@"
    ran+=("$name: passed in $((SECONDS - began)) s")
}

ran=()
trap 'printf "\n=== Rings run\n"; printf "%s\n" "${ran[@]:-none}"' EXIT

ring "Ring 1, engine, models and parts, no cluster" \
    .venv/bin/pytest -q -m "not cluster" -n 2 --dist load --durations 20 "$@"
ring "Ring 2, on a real API server, Job controller and scheduler" \
    .venv/bin/pytest -q -m cluster tests/chart tests/cluster tests/sandbox -n 5 --dist loadscope --no-loadscope-reorder --durations 20 "$@"

#!/usr/bin/env bash
# Ring 3: the tests of ring 2 on a cluster that kind makes, and the controller's image on it. Deleted afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."

kind_module=sigs.k8s.io/kind@v0.32.0
# The node image that this release of kind names as its own.
node_image=kindest/node:v1.36.1@sha256:3489c7674813ba5d8b1a9977baea8a6e553784dab7b84759d1014dbd78f7ebd5

fail() {
    printf 'test-kind: %s\n' "$1" >&2
    exit 1
}

command -v docker >/dev/null || fail "kind needs Docker, and there is no command docker here"
docker info >/dev/null 2>&1 || fail "kind needs Docker, which does not run here: docker info fails"

python=.venv/bin/python
go=$($python -c 'from rich.console import Console; from admitter.sandbox.toolchain import find_go
print(find_go(Console(stderr=True)))')
image=admitter:$(.venv/bin/admitter version)
cluster=admitter-test-$$
work=$(mktemp -d)
export KUBECONFIG=$work/kubeconfig
nodes=

kind() { "$go" run "$kind_module" "$@"; }

cleanup() {
    if [ -n "$nodes" ]; then kill "$nodes" 2>/dev/null || true; fi
    kind delete cluster --name "$cluster" || true
    rm -rf "$work"
}
trap cleanup EXIT

docker build --file Containerfile --tag "$image" .
kind create cluster --name "$cluster" --image "$node_image" --wait 3m
kind load docker-image "$image" --name "$cluster"
kubectl=$($python -c 'from rich.console import Console; from admitter.sandbox.build import ensure_programs
print(ensure_programs(Console(stderr=True), ["kubectl"])["kubectl"])')

# The image runs on the real node, which then takes nothing else: the Jobs' pods go to simulated nodes.
.venv/bin/admitter install
"$kubectl" --namespace admitter-system rollout status deployment/admitter-controller --timeout 3m
"$kubectl" taint nodes --all admitter.dev/real=true:NoSchedule
$python -m tests.simulated_nodes "$KUBECONFIG" 2>"$work/nodes.log" &
nodes=$!
until "$kubectl" get node spot-0 >/dev/null 2>&1; do
    kill -0 "$nodes" 2>/dev/null || { cat "$work/nodes.log"; fail "the simulated nodes ended"; }
    sleep 1
done
"$kubectl" apply --filename manifests/examples/queues.yaml --filename manifests/examples/jobs.yaml
"$kubectl" --namespace team-a wait --for condition=Complete job --all --timeout 5m
"$kubectl" delete --filename manifests/examples/jobs.yaml
"$kubectl" wait clusterqueue cluster-total --for 'jsonpath={.status.admittedWorkloads}=0' --timeout 1m
"$kubectl" delete --filename manifests/examples/queues.yaml

# The tests kill and restart a controller of their own: it must be the only one.
"$kubectl" --namespace admitter-system scale deployment/admitter-controller --replicas 0
"$kubectl" --namespace admitter-system wait --for delete pod --all --timeout 1m
ADMITTER_TEST_KUBECONFIG=$KUBECONFIG .venv/bin/pytest -q -m cluster -n 3 --dist load tests/cluster "$@"

"""Which user is told what of nodes."""

import gzip
from collections.abc import AsyncIterator
from time import process_time
from typing import Any

import orjson
import pytest

from admitter.client.access import Right, User
from admitter.web.views.cluster_map import CORDONED, NOT_READY
from tests.insight.nodes import GPU, LOST, node, park, pods
from tests.insight.states import NOW, State
from tests.web.pages import ADMIN, TENANT, Served, served
from tests.web.test_server import ask

Json = dict[str, Any]

HOSTILE = ("<img src=x onerror=alert(1)>", "\u202egnp.exe", "a" * 253, "${1+1}", "'\";--")
MOST_BYTES = 150_000
MOST_SECONDS = 2.0
"""Of CPU, for what takes a fifth of one on an idle machine."""


def busy() -> State:
    """The park, and what waits: for quota, and for a node."""
    state = park()
    for name, gpus, number in (("small", "1", 2), ("whole", "8", 3), ("giant", "9", 1)):
        state.waits("team-a", name, {GPU: gpus}, pods=number)
    state.waits("team-b", "secret-line", {GPU: "8"})
    for team, name in (("team-a", "late"), ("team-b", "secret-late")):
        late = state.holds(team, name, {GPU: ("8", "a100")}, cluster_queue="vision")
        conditions = [
            {"type": "PodScheduled", "status": "False", "message": "0/8 nodes are available: 8 Insufficient"}
        ]
        pods(state, late, "", {GPU: "8"}, status={"phase": "Pending", "conditions": conditions})
    return state


@pytest.fixture
async def page() -> AsyncIterator[Served]:
    async with served(busy()) as made:
        yield made


def parts(answer: Json) -> dict[str, list[tuple[str, float, int]]]:
    """What is used on each node: queue, amount and pods."""
    queues, found = answer["queues"], {}
    for key, flat in zip(answer["nodes"]["key"], answer["nodes"]["parts"], strict=True):
        found[key] = [(queues[flat[at]], *flat[at + 1 : at + 3]) for at in range(0, len(flat), 3)]
    return found


async def test_all_nodes_with_what_each_queue_uses(page: Served) -> None:
    seen = await ask(page, "/api/map")
    assert (seen["resource"], seen["resources"], seen["named"]) == (GPU, [GPU, "cpu", "memory"], True)
    assert parts(seen)["gpu-1"] == [("vision", 3, 1), ("speech", 1, 1)]
    nodes = seen["nodes"]
    assert nodes["key"] == [*(f"gpu-{number}" for number in range(6)), "cpu-0", "cpu-1"]
    assert [seen["flavors"][number] for number in nodes["flavor"]] == ["a100"] * 6 + ["cpu"] * 2
    assert nodes["total"] == [8] * 6 + [0] * 2
    assert nodes["state"] == [0, 0, 0, 0, NOT_READY, CORDONED, 0, 0]
    assert nodes["trouble"] == {
        "4": {"since": NOW - 3600, "words": LOST},
        "5": {"since": NOW - 3600, "words": ""},
    }
    assert [level["name"] for level in seen["levels"]] == ["zone", "rack"]
    assert [seen["places"][number] for number in nodes["place"]][2:4] == [["a", "a2"], ["b", "b1"]]
    assert {key: len(value) for key, value in nodes.items() if key != "trouble"} == dict.fromkeys(
        ("key", "flavor", "place", "total", "pods", "parts", "state"), 8
    )


async def test_fragmentation_and_pods_that_do_not_fit(page: Served) -> None:
    seen = await ask(page, "/api/map", resource=GPU)
    everywhere, large, small = seen["spread"]
    assert (everywhere["flavor"], large["flavor"], small["flavor"]) == (None, "a100", "cpu")
    assert (large["nodes"], large["free"], large["largest"]) == (4, 13, 5)
    assert large["fits"] == [[1, "1", 13], [2, "2", 6], [4, "4", 3], [8, "8", 0]]
    assert (everywhere["nodes"], everywhere["free"], small["nodes"]) == (4, 13, 0)
    waiting = seen["waiting"]
    assert waiting["pods"] == 7
    assert waiting["counts"] == {"TooLarge": 1, "Spread": 4, "Full": 0}
    assert [(each["name"], each["why"], each["size"]["words"]) for each in waiting["first"]] == [
        ("giant", "TooLarge", "9"),
        ("secret-line", "Spread", "8"),
        ("whole", "Spread", "8"),
    ]
    assert seen["noNode"]["pods"] == 2
    assert seen["noNode"]["first"][0] == {
        "namespace": "team-a",
        "name": "late",
        "queue": "vision",
        "title": "vision",
        "pods": 1,
        "size": {"value": 8, "words": "8"},
        "words": "0/8 nodes are available: 8 Insufficient",
        "visible": True,
    }


async def test_another_resource_is_counted_in_its_own_unit(page: Served) -> None:
    seen = await ask(page, "/api/map", resource="cpu")
    assert parts(seen)["gpu-1"] == [("speech", 4, 1), ("vision", 4, 1)]
    assert seen["nodes"]["total"] == [64] * 6 + [32] * 2
    assert (await ask(page, "/api/map", resource="<b>"))["resource"] == GPU
    assert (await ask(page, "/api/map", resource="memory"))["spread"][0]["words"]["total"] == "2304Gi"


async def test_a_node_and_the_workloads_with_pods_on_it(page: Served) -> None:
    one = await ask(page, "/api/map/node", key="gpu-1", resource=GPU)
    assert (one["flavor"], one["state"]) == ("a100", 0)
    assert one["place"] == [{"level": "zone", "place": "a"}, {"level": "rack", "place": "a1"}]
    gpus, cpus, memory = one["resources"]
    assert (gpus["total"], gpus["used"], gpus["free"]) == (8, 4, 4)
    assert (cpus["resource"], cpus["words"]) == ("cpu", {"total": "64", "used": "8", "free": "56"})
    assert memory["words"]["total"] == "512Gi"
    first, second = one["workloads"]["first"]
    assert (first["namespace"], first["name"], first["used"], first["pods"]) == ("team-a", "train", 3, 1)
    assert (second["queue"], second["words"]) == ("speech", "1")
    lost = await ask(page, "/api/map/node", key="gpu-4")
    assert (lost["state"], lost["since"], lost["words"]) == (NOT_READY, NOW - 3600, LOST)
    assert await ask(page, "/api/map/node", key="gpu-99", status=404) == {"error": "there is no such node"}


async def test_a_tenant_sees_the_nodes_with_own_pods_and_nothing_of_others(page: Served) -> None:
    for path in ("/api/map", "/api/map/node"):
        refused = await ask(page, path, TENANT, 403, key="gpu-3")
        assert "may not list ClusterQueues" in refused["error"]
        for name in ("team-b", "not-there"):
            refused = await ask(page, path, TENANT, 403, namespace=name, key="gpu-3")
            assert refused["error"].endswith(f"may not list Workloads in namespace {name}")
    seen = await ask(page, "/api/map", TENANT, namespace="team-a")
    assert seen["named"] is False
    assert list(parts(seen).values()) == [
        [("vision", 8, 2)],
        [("vision", 3, 1)],
        [("vision", 3, 3)],
        [("vision", 8, 1)],
    ], "the nodes with pods of its own, and on the second only those"
    assert seen["nodes"]["pods"] == [2, 1, 3, 1]
    assert not {"spread", "waiting", "noNode", "elsewhere"} & seen.keys(), (
        "what is free tells what others use"
    )
    assert seen["levels"] == []
    for word in ("speech", "team-b", "decode", "secret", "gpu-", "cpu-", 'a1"', LOST):
        assert f'"{word}' not in orjson.dumps(seen).decode(), word


async def test_a_node_tells_a_tenant_of_own_pods_alone(page: Served) -> None:
    seen = await ask(page, "/api/map", TENANT, namespace="team-a")
    one = await ask(
        page, "/api/map/node", TENANT, namespace="team-a", key=seen["nodes"]["key"][1], resource=GPU
    )
    assert [(each["name"], each["words"]) for each in one["workloads"]["first"]] == [("train", "3")]
    assert one["resources"][0]["words"] == {"total": "8", "used": "3"}
    assert (one["place"], one["words"]) == ([], "")
    for word in ("speech", "team-b", "decode", "secret", "gpu-1", "free"):
        assert word not in orjson.dumps(one).decode(), word
    lost = await ask(page, "/api/map/node", TENANT, namespace="team-a", key=seen["nodes"]["key"][3])
    assert (lost["state"], lost["words"]) == (NOT_READY, ""), "that it is lost is said, and no more"


@pytest.mark.parametrize("key", ["gpu-0", "gpu-3", "cpu-1", "not-there", ""])
async def test_nodes_that_are_not_seen_are_like_nodes_that_are_not_there(page: Served, key: str) -> None:
    missing = await ask(page, "/api/map/node", TENANT, 404, namespace="team-a", key=key)
    assert missing == {"error": "there is no such node with pods of namespace team-a"}


async def test_names_of_nodes_are_for_users_that_may_list_nodes(
    page: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Right] = []

    async def may(_: User, right: Right) -> bool:
        asked.append(right)
        return False

    monkeypatch.setattr(page.rights, "may", may)
    seen = await ask(page, "/api/map")
    assert asked == [Right("list", "nodes", group="")]
    assert not seen["named"]
    assert (seen["levels"], seen["places"]) == ([], [[]])
    assert len(set(seen["nodes"]["key"])) == 8
    text = orjson.dumps(seen).decode()
    assert not any(word in text for word in ("gpu-0", "cpu-0", '"a1"', LOST))
    assert seen["spread"][0]["free"] == 13, "all of the tree's amounts are seen"
    one = await ask(page, "/api/map/node", key=seen["nodes"]["key"][4])
    assert (one["flavor"], one["place"], one["words"]) == ("a100", [], "")
    await ask(page, "/api/map/node", status=404, key="gpu-4")


@pytest.mark.parametrize(
    ("token", "rights"),
    [
        (TENANT, [("pods", "team-a")]),
        (TENANT, [("pods", "team-a"), ("nodes", "")]),
        (ADMIN, [("pods", "team-a")]),
        (ADMIN, [("pods", "team-a"), ("nodes", "")]),
    ],
)
async def test_the_node_of_a_pod_is_found_in_the_map_with_and_without_its_name(
    page: Served, monkeypatch: pytest.MonkeyPatch, token: str, rights: list[tuple[str, str]]
) -> None:
    async def may(_: User, right: Right) -> bool:
        return (right.resource, right.namespace) in rights

    monkeypatch.setattr(page.rights, "may", may)
    pods = (await ask(page, "/api/workload", token, namespace="team-a", name="train"))["pods"]["pods"]
    key = pods[0]["nodeKey"]
    assert (key == pods[0]["node"]) == (("nodes", "") in rights)
    of = "team-a" if token == TENANT else ""
    one = await ask(page, "/api/map/node", token, key=key, namespace=of)
    assert "train" in [each["name"] for each in one["workloads"]["first"]]


@pytest.mark.parametrize(("token", "linked"), [(TENANT, {"Ready"}), (ADMIN, {"Ready", "Failed"})])
async def test_the_node_of_a_pod_that_has_ended_is_no_link_for_users_to_which_the_map_does_not_show_it(
    monkeypatch: pytest.MonkeyPatch, token: str, linked: set[str]
) -> None:
    async def may(_: User, right: Right) -> bool:
        return (right.resource, right.namespace) == ("pods", "team-a")

    state = park()
    ended = state.holds("team-a", "ended", {GPU: ("8", "a100")}, cluster_queue="vision")
    pods(state, ended, "gpu-3", {GPU: "4"}, status={"phase": "Failed"})
    pods(state, ended, "gpu-2", {GPU: "4"})
    of = "team-a" if token == TENANT else ""
    async with served(state) as page:
        monkeypatch.setattr(page.rights, "may", may)
        shown = await ask(page, "/api/workload", token, namespace="team-a", name="ended")
        found = {pod["state"]: pod["nodeKey"] for pod in shown["pods"]["pods"]}
        assert set(found) == {"Ready", "Failed"}
        assert {state for state, key in found.items() if key is not None} == linked
        for key in filter(None, found.values()):
            await ask(page, "/api/map/node", token, key=key, namespace=of)


async def test_workloads_of_hidden_namespaces_have_no_name(
    page: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user may list ClusterQueues, and Workloads of one namespace only."""

    async def may_list(_: User, plural: str, namespace: str = "") -> bool:
        return plural == "clusterqueues" or namespace == "team-a"

    monkeypatch.setattr(page.rights, "may_list", may_list)
    seen = await ask(page, "/api/map")
    assert [(each["name"], each["visible"]) for each in seen["waiting"]["first"]] == [
        ("giant", True),
        ("", False),
        ("whole", True),
    ]
    one = await ask(page, "/api/map/node", key="gpu-1", resource=GPU)
    assert [(each["name"], each["queue"]) for each in one["workloads"]["first"]] == [
        ("train", "vision"),
        ("", "speech"),
    ]
    for answer in (seen, one):
        assert not any(word in str(answer) for word in ("team-b", "decode", "secret"))


@pytest.mark.parametrize("name", HOSTILE)
async def test_names_are_told_as_they_are(name: str) -> None:
    state = park()
    node(state, name, "a100", {GPU: "8"}, zone=name, rack=name)
    made = state.holds("team-a", name, {GPU: ("1", "a100")}, cluster_queue=name)
    pods(state, made, name, {GPU: "1"})
    async with served(state) as page:
        seen = await ask(page, "/api/map")
        assert parts(seen)[name] == [(name, 1, 1)]
        one = await ask(page, "/api/map/node", key=name, resource=GPU)
        assert one["workloads"]["first"][0]["name"] == name
        mine = await ask(page, "/api/map", TENANT, namespace="team-a")
        assert len(mine["nodes"]["key"]) == 5


async def test_no_client_is_told_anything_of_nodes_without_a_token(page: Served) -> None:
    for path in ("/api/map", "/api/map/node"):
        assert await ask(page, path, "", 401) == {"error": "log in with a token"}


async def test_a_cluster_without_nodes_is_a_map_without_cells() -> None:
    async with served(State()) as page:
        seen = await ask(page, "/api/map")
        assert (seen["resource"], seen["resources"], seen["nodes"]["key"]) == ("cpu", [], [])
        assert seen["spread"][0]["nodes"] == 0


def hall(nodes: int, pods_each: int, queues: int) -> State:
    """Very many nodes in racks, with many pods each, of many queues and Workloads."""
    state = State("a100", "h100", "t4", "cpu")
    for number in range(queues):
        state.queue(f"queue-{number:03}", {GPU: {"a100": {"min": "8"}}})
        state.namespace(f"ns-{number:03}", f"queue-{number:03}")
    made = [
        state.holds(
            f"ns-{n % queues:03}", f"job-{n:05}", {GPU: ("1", "a100")}, cluster_queue=f"queue-{n % queues:03}"
        )
        for n in range(nodes)
    ]
    for number in range(nodes):
        flavor = ("a100", "h100", "t4", "cpu")[number % 4]
        name = f"pool-{flavor}-{number * 7919 % 100_003:05}-zone{number % 3}.c.example.internal"
        has = {GPU: "8", "cpu": "96"} if flavor != "cpu" else {"cpu": "96"}
        node(
            state,
            name,
            flavor,
            has,
            ready=number % 97 != 0,
            cordoned=number % 89 == 0,
            zone=f"z{number % 3}",
            rack=f"r{number // 32}",
        )
        for each in range(pods_each):
            gpus = {GPU: "1"} if each < number * 31 % 9 and flavor != "cpu" else {}
            one = made[(number * 13 + each // 3 * 7) % nodes]
            pods(state, one, name, {**gpus, "cpu": "2"}, counted=(GPU, "cpu"))
    return state


@pytest.mark.long
async def test_two_thousand_nodes_are_small_and_fast() -> None:
    async with served(hall(2000, 20, 100)) as page:
        began = process_time()
        seen = await ask(page, "/api/map")
        took = process_time() - began
        assert len(seen["nodes"]["key"]) == 2000
        assert sum(seen["nodes"]["pods"]) == 40_000
        packed = gzip.compress(orjson.dumps(seen), 6)
        print(f"map of 2,000 nodes: {len(packed)} bytes, {took:.2f} s of CPU")
        assert len(packed) <= MOST_BYTES
        assert took < MOST_SECONDS

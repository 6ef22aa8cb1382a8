"""Jobs that name no queue, and how they find one, with `admitter simulate` (docs/placement.md)."""

from pathlib import Path
from typing import Any

from tests.cluster.objects import ADMITTER, Json, cluster_queue, elastic_quota, local_queue, resource_flavor
from tests.simulate.elastic import asks, rows
from tests.simulate.test_namespaces import PARENT, QUOTA, cohort, queues
from tests.simulate.test_simulate import annotate, simulate, states

ONE = {"cpu": 1}
OWN = {"from": "Namespace", "create": True}
GOLD = [
    resource_flavor("default", {}),
    cluster_queue("gold", {"cpu": {"default": "4"}}),
]


def policy(*rules: Json, name: str = "all", **selector: str) -> Json:
    """A PlacementPolicy for namespaces with a label, or for all."""
    wanted: Json = {"matchLabels": selector} if selector else {}
    spec = {"namespaceSelector": wanted, "rules": list(rules)}
    return {"apiVersion": ADMITTER, "kind": "PlacementPolicy", "metadata": {"name": name}, "spec": spec}


def namespace(name: str, labels: Json | None = None, **annotations: str) -> Json:
    """A namespace with annotations."""
    given = {"quota": QUOTA, "parent": PARENT}
    metadata = {
        "name": name,
        "labels": labels or {},
        "annotations": {given[short]: text for short, text in annotations.items()},
    }
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def plain(where: str, name: str, second: int = 0, user: str = "", **labels: str) -> Json:
    """A Job that names no queue, of which the API server would know the maker."""
    made = asks(where, name, ONE, second, queue=None)
    made["metadata"]["labels"] = labels
    return annotate(made, "user", user) if user else made


def where(result: Json) -> dict[str, str | None]:
    """The ClusterQueue of each Job."""
    return {row["job"]: row["clusterQueue"] for row in result["workloads"]}


def why(result: Json, name: str) -> tuple[str, str]:
    """Why a Job waits."""
    row = rows(result)[name]
    return row["reason"], row["message"]


def test_each_namespace_of_002_goes_to_the_queue_of_its_name(tmp_path: Path) -> None:
    """*Namespace to queue mapping*: namespace development to queue root.development, made on the spot."""
    result = simulate(
        tmp_path,
        policy(OWN),
        namespace("sized", quota='{"cpu": "1"}'),
        plain("development", "work"),
        plain("sized", "first", 1),
        plain("sized", "second", 2),
    )
    assert where(result) == {"work": "development", "first": "sized", "second": "sized"}
    assert states(result) == {"work": "Admitted", "first": "Admitted", "second": "Pending"}
    assert queues(result) == {"development": "root", "sized": "root"}


def test_namespaces_of_002_are_grouped_under_their_parents(tmp_path: Path) -> None:
    """*Parent queue mapping*: finance and sales under production, dev and test under development."""
    parents = {"finance": "root.production", "sales": "production", "dev": "root.development"}
    result = simulate(
        tmp_path,
        policy(OWN),
        GOLD[0],
        cohort("production", 1),
        cohort("development", 4),
        *(namespace(name, parent=parent) for name, parent in parents.items()),
        *(plain(name, name, second) for second, name in enumerate(parents)),
    )
    assert queues(result) == {"finance": "production", "sales": "production", "dev": "development"}
    assert states(result) == {"finance": "Admitted", "sales": "Pending", "dev": "Admitted"}


def test_a_parent_that_is_not_in_the_configuration_lets_no_job_in(tmp_path: Path) -> None:
    lab = namespace("lab", parent="root.research")
    result = simulate(tmp_path, policy(OWN), lab, plain("lab", "work"), exit_code=1)
    assert states(result) == {"work": "Pending"}
    assert "Cohort research does not exist" in why(result, "work")[1]
    made = simulate(tmp_path, policy(OWN), lab, cohort("research"), plain("lab", "work"))
    assert states(made) == {"work": "Admitted"}


def test_a_rules_parent_is_made_only_if_it_says_so(tmp_path: Path) -> None:
    rule = OWN | {"parent": "root.teams.new"}
    result = simulate(tmp_path, policy(rule), plain("lab", "work"))
    words = "rule 1 (from Namespace): there is no Cohort teams.new for ClusterQueue lab to belong to"
    assert why(result, "work") == ("NotPlaced", f"PlacementPolicy all finds no queue for it: {words}")
    assert (where(result), rows(result)["work"]["position"]) == ({"work": None}, None)
    made = simulate(tmp_path, policy(rule | {"createParent": True}), plain("lab", "work"))
    assert queues(made) == {"lab": "teams.new"}
    assert states(made) == {"work": "Admitted"}


def test_labels_users_and_what_is_left(tmp_path: Path) -> None:
    result = simulate(
        tmp_path,
        *GOLD,
        policy(
            {"from": "Label", "label": "wants"},
            {"from": "User", "create": True},
            {"from": "Queue", "queue": "gold"},
        ),
        plain("a", "labelled", wants="root.gold"),
        plain("a", "of-alice", user="alice", wants="nothing"),
        plain("b", "of-alice-too", user="alice"),
        plain("b", "of-nobody"),
    )
    assert where(result) == {
        "labelled": "gold",
        "of-alice": "alice",
        "of-alice-too": "alice",
        "of-nobody": "gold",
    }
    assert set(states(result).values()) == {"Admitted"}


def test_a_job_without_a_queue_waits_until_one_is_made(tmp_path: Path) -> None:
    later = [annotate(manifest, "simulated-at", "1m") for manifest in (*_copies(GOLD),)]
    result = simulate(tmp_path, policy({"from": "Queue", "queue": "gold"}), plain("a", "work"), *later)
    assert [(e["time"][14:19], e["type"]) for e in result["events"]] == [("01:00", "Admitted")]


def test_better_rules_place_pending_jobs_and_leave_alone_those_that_were_there_before(tmp_path: Path) -> None:
    wider = annotate(policy(OWN), "simulated-at", "1m")
    result = simulate(
        tmp_path,
        namespace("new", {"placed": "yes"}),
        policy({"from": "Label", "label": "wants"}, placed="yes"),
        plain("new", "waits"),
        plain("old", "before"),
        wider,
        plain("old", "after", 90),
    )
    assert where(result) == {"waits": "new", "after": "old"}


def test_a_job_without_its_policy_any_more_is_its_users(tmp_path: Path) -> None:
    gone = annotate(policy({"from": "Label", "label": "wants"}), "simulated-until", "1m")
    result = simulate(tmp_path, gone, plain("a", "work"))
    assert why(result, "work") == ("PlacementEnded", "no PlacementPolicy selects its namespace any more")


def test_the_first_policy_by_name_counts_and_others_namespaces_are_left_alone(tmp_path: Path) -> None:
    result = simulate(
        tmp_path,
        *GOLD,
        namespace("a", {"placed": "yes"}),
        policy({"from": "Queue", "queue": "gold"}, name="first", placed="yes"),
        policy(OWN, name="second", placed="yes"),
        plain("a", "work"),
        plain("b", "nobodys"),
    )
    assert where(result) == {"work": "gold"}


def test_an_elastic_quota_that_manages_all_comes_first(tmp_path: Path) -> None:
    quota = elastic_quota("a", min={"cpu": 1}, manageAllJobs=True)
    result = simulate(tmp_path, policy(OWN), quota, plain("a", "work"), plain("b", "other"))
    assert where(result) == {"work": "eq_a_quota", "other": "b"}


def test_the_label_of_kueue_leads_to_a_local_queue_that_is_there(tmp_path: Path) -> None:
    jobs = [plain("a", "queued"), plain("b", "others")]
    for made in jobs:
        made["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "main"}
    assert where(simulate(tmp_path, *GOLD, local_queue("a", "gold"), *jobs)) == {"queued": "gold"}


def test_such_a_local_queue_comes_before_an_elastic_quota_that_manages_all(tmp_path: Path) -> None:
    jobs = [plain("a", "queued"), plain("a", "counted")]
    for made, queue in zip(jobs, ("main", "nope"), strict=True):
        made["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue}
    quota = elastic_quota("a", min={"cpu": 1}, manageAllJobs=True)
    found = where(simulate(tmp_path, *GOLD, local_queue("a", "gold"), quota, *jobs))
    assert found == {"queued": "gold", "counted": "eq_a_quota"}


def test_a_policy_that_breaks_a_rule_is_named(tmp_path: Path) -> None:
    result = simulate(tmp_path, policy({"from": "Label"}), plain("a", "work"), exit_code=1)
    (error,) = result["errors"]
    assert (error["object"], error["message"]) == ("PlacementPolicy all", "spec.rules[0]: label is missing")


def _copies(manifests: list[Json]) -> list[Any]:
    """Manifests that can be annotated without changing the others' ones."""
    return [{**manifest, "metadata": {**manifest["metadata"]}} for manifest in manifests]

"""What importers are made of: an account of fields, names, and manifests in order."""

import pytest

from admitter.importers.naming import Names
from admitter.importers.reading import Document
from admitter.importers.systems import SystemName
from admitter.importers.translation import Fidelity, ManifestSource, Translation
from tests.importers.importing import Json, outcomes, refusals, translation


def source(raw: Json) -> tuple[ManifestSource, Translation]:
    into = Translation()
    return ManifestSource(raw, "Thing t", into), into


def test_what_is_not_accounted_for_is_refused_by_name() -> None:
    thing, into = source({"spec": {"a": 1, "b": {"c": [{"d": 2}, {"e": 3}]}}, "other": {}})
    thing.translated("spec.a", "the same")
    thing.approximated("spec.b.c[0]", "nearly")
    thing.close()
    assert outcomes(into, "Thing t") == {
        "spec.a": "translated",
        "spec.b.c[0]": "approximated",
        "spec.b.c[1].e": "refused",
        "other": "refused",
    }


def test_a_field_does_not_account_for_one_with_a_name_that_begins_alike() -> None:
    thing, into = source({"spec": {"quota": 1, "quotas": 2, "list": [1, 2]}})
    thing.translated("spec.quota", "the same")
    thing.translated("spec.list[1]", "the same")
    thing.close()
    assert set(refusals(into)) == {("Thing t", "spec.quotas"), ("Thing t", "spec.list[0]")}


def test_the_object_as_a_whole_accounts_for_all_of_it() -> None:
    thing, into = source({"spec": {"a": 1}, "x": [2]})
    thing.refused("", "nothing like it")
    thing.close()
    assert refusals(into) == {("Thing t", ""): "nothing like it"}


def test_a_key_with_dots_is_one_step_of_a_path() -> None:
    thing, into = source({"metadata": {"labels": {"example.com/a.b": "x", "plain": "y"}}})
    assert thing.text("metadata.labels[example.com/a.b]") == "x"
    thing.close()
    assert [field for _, field in refusals(into)] == [
        "metadata.labels[example.com/a.b]",
        "metadata.labels.plain",
    ]


@pytest.mark.parametrize(
    ("value", "read", "says"),
    [
        ("text", "mapping", "must be a map"),
        ({"a": 1}, "sequence", "must be a list"),
        (5, "text", "must be a text"),
        ([1], "items", None),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_where_it_is_read(value: object, read: str, says: str) -> None:
    thing, into = source({"spec": value})
    assert not getattr(thing, read)("spec")
    thing.close()
    if says is None:
        assert refusals(into) == {("Thing t", "spec[0]"): "must be a map"}
    else:
        assert refusals(into) == {("Thing t", "spec"): says}


def test_true_is_no_number() -> None:
    thing, into = source({"replicas": True})
    assert thing.number("replicas", 1) == 1
    assert refusals(into) == {("Thing t", "replicas"): "must be a whole number"}


def test_the_worst_outcome_counts() -> None:
    into = Translation()
    assert into.worst is Fidelity.TRANSLATED
    into.find("a", "x", Fidelity.APPROXIMATED, "")
    into.find("b", "y", Fidelity.TRANSLATED, "")
    assert (into.worst, into.worst.severity) == (Fidelity.APPROXIMATED, 1)
    into.find("c", "z", Fidelity.REFUSED, "")
    assert into.worst.severity == 2


def own(kind: str, name: str, **spec: object) -> Json:
    return {
        "apiVersion": "admitter.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def test_what_others_need_is_applied_first_and_the_rest_stays_in_its_order() -> None:
    into = Translation()
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}},
    }
    given = [
        job,
        role,
        own("LocalQueue", "l", clusterQueue="b"),
        own("ClusterQueue", "b"),
        own("ClusterQueue", "a"),
        own("ResourceFlavor", "f"),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}},
    ]
    for manifest in given:
        into.add(manifest, "origin")
    assert [m["metadata"]["name"] for m in into.in_order()] == ["n", "f", "b", "a", "l", "r", "j"]


def test_a_manifest_that_would_be_refused_later_is_refused_with_its_field() -> None:
    into = Translation()
    into.add(own("LocalQueue", "l", clusterQueue="Not_A_Name"), "Queue l")
    assert into.manifests == []
    (words,) = refusals(into).values()
    assert words.startswith("would become an invalid LocalQueue l: spec.clusterQueue: ")


@pytest.mark.parametrize(
    ("part", "marks", "says"),
    [
        ("annotations", {"x": 5}, "metadata.annotations.x: "),
        ("labels", {"x": True}, "metadata.labels.x: "),
        ("labels", {"x": "no good value"}, "metadata.labels.x: "),
        ("annotations", {"no good key": "x"}, "metadata.annotations.no good key"),
        ("labels", ["x"], "metadata.labels: "),
    ],
)
@pytest.mark.parametrize("kind", ["Cohort", "Namespace"])
def test_labels_and_annotations_are_such_as_an_api_server_takes(
    kind: str, part: str, marks: object, says: str
) -> None:
    into, manifest = Translation(), own(kind, "c")
    manifest["metadata"][part] = marks
    if kind == "Namespace":
        manifest["apiVersion"] = "v1"
    assert not into.add(manifest, "Cohort c")
    (words,) = refusals(into).values()
    assert words.startswith(f"would become an invalid {kind} c: {says}")


def test_of_what_is_refused_as_a_whole_only_refusals_are_told() -> None:
    thing, into = source({"a": 1, "b": 2, "c": 3})
    other = ManifestSource({"a": 1}, thing.title, into)
    other.translated("a", "the same")
    thing.translated("a", "the same")
    thing.refused("b", "wrong")
    assert not thing.add(own("ClusterQueue", "Not_A_Name"))
    thing.approximated("c", "nearly")
    thing.close()
    told = [(f.field, f.outcome) for f in into.findings]
    assert told == [
        ("a", Fidelity.TRANSLATED),
        ("b", Fidelity.REFUSED),
        ("", Fidelity.REFUSED),
    ]


def test_of_two_manifests_of_one_name_the_first_counts() -> None:
    into = Translation()
    into.add(own("ClusterQueue", "q", cohort="a"), "ClusterQueue q")
    into.add(own("ClusterQueue", "q", cohort="b"), "ClusterQueue q")
    assert [m["spec"] for m in into.manifests] == [{"cohort": "a"}]
    assert "already" in refusals(into)["ClusterQueue q", ""]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("spot", "spot"),
        ("on_demand", "on-demand"),
        ("Team A", "team-a"),
        ("_x_", "x"),
        ("a.b", "a.b"),
        ("root.dev.", "root.dev"),
        ("a..b-._c", "a.b.c"),
    ],
)
def test_a_name_becomes_what_is_nearest_to_it(old: str, new: str) -> None:
    assert Names().of("Kind", old) == new


def test_different_names_stay_different_and_the_same_stay_the_same() -> None:
    names = Names()
    given = ["on_demand", "on-demand", "on demand", "on_demand", "___", "ü", "q" * 80, "q" * 79 + "_"]
    new = [names.of("Kind", each) for each in given]
    assert new[0] == new[3] == "on-demand"
    assert len(set(new)) == len(set(given))
    assert all(len(each) <= 63 for each in new)
    assert names.of("Other", "on-demand") == "on-demand"


def test_a_name_that_is_kept_is_given_to_no_other() -> None:
    names = Names()
    names.keep("Kind", "on-demand")
    assert names.of("Kind", "on_demand").startswith("on-demand-")
    assert names.of("Kind", "on-demand") == "on-demand"
    assert names.of("Other", "on_demand") == "on-demand"


@pytest.mark.parametrize(
    ("system", "version", "kind", "becomes"),
    [
        (SystemName.KUEUE, "kueue.x-k8s.io/v1beta1", "ResourceFlavor", "ResourceFlavor"),
        (SystemName.KUEUE, "kueue.x-k8s.io/v1beta1", "ClusterQueue", "ClusterQueue"),
        (SystemName.KUEUE, "kueue.x-k8s.io/v1beta1", "Cohort", "Cohort"),
        (SystemName.NOS, "nos.nebuly.com/v1alpha1", "ElasticQuota", "ElasticQuota"),
        (SystemName.SCHEDULER_PLUGINS, "scheduling.x-k8s.io/v1alpha1", "ElasticQuota", "ElasticQuota"),
        (SystemName.VOLCANO, "scheduling.volcano.sh/v1beta1", "Queue", "ClusterQueue"),
    ],
)
def test_a_renamed_queue_does_not_become_one_that_comes_later(
    system: SystemName, version: str, kind: str, becomes: str
) -> None:
    def named(name: str) -> Document:
        raw = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "a"}, "spec": {}}
        return Document(f"{kind} {name}", raw)

    into = translation(system, [named("on_demand"), named("on-demand")])
    new = {f.object: f.words for f in into.findings if f.field == "metadata.name"}
    assert new[f"{kind} on-demand"] == "on-demand"
    assert new[f"{kind} on_demand"].startswith("renamed: on_demand becomes on-demand-")
    made = [m["metadata"]["name"] for m in into.manifests if m["kind"] == becomes]
    assert "on-demand" in made
    assert "on-demand" not in made[:1]


def test_names_are_the_same_in_every_run() -> None:
    assert Names().of("Kind", "q" * 80) == Names().of("Kind", "q" * 80)
    assert Names().of("Kind", "___") == Names().of("Kind", "___")

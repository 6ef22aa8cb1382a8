"""What a JobKind says of itself, and of objects that are none of what it expects."""

import copy
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitter.convert.pod_sets import pod_set
from admitter.kinds import KindError
from admitter.kinds.compiled import CompiledKind
from admitter.kinds.registry import Kinds
from admitter.quantities.amounts import InvalidQuantityError
from tests.kinds.described import EXAMPLES, Json, example, experiment, kind_of, pod_sets, template, trial
from tests.scale import examples

KEY = ("lab.example.com/v1", "Experiment")


def defects(*manifests: Json, schema: Json | None = None) -> dict[str, list[str]]:
    kinds = Kinds(manifests, {KEY: schema} if schema is not None else {})
    kinds.find_all()
    return {each.name: list(map(str, each.problems)) for each in kinds.defects}


def compiled(**changed: Any) -> CompiledKind:
    found = Kinds([experiment(**changed)], {}).find(*KEY)
    assert found is not None
    return found


def sets(kind: CompiledKind, raw: Json) -> dict[str, int]:
    found = kind.pod_sets(raw, lambda *_: None, lambda *_: None)
    return {each.name: each.count for each in found}


def test_two_pod_templates() -> None:
    assert sets(compiled(), trial(copies=3)) == {"control": 1, "probes": 3}


POD_SET: Json = {"name": "a", "template": "spec.a"}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param(
            {"active": "object.spec."}, "spec.active: does not compile: Syntax error", id="does not compile"
        ),
        pytest.param({"podSets": []}, "spec.podSets: List should have at least 1 item", id="no pod sets"),
        pytest.param(
            {"podSets": [{**POD_SET, "count": "nodes * 2"}]},
            "spec.podSets[0].count: there is no variable nodes here: these are object, variables",
            id="a variable that is not there",
        ),
        pytest.param(
            {"podSets": [{**POD_SET, "count": "item.n"}]},
            "spec.podSets[0].count: there is no variable item here",
            id="an element without each",
        ),
        pytest.param(
            {"podSets": [{"name": "a"}]},
            "spec.podSets[0].template: is missing: give template, object or containers",
            id="no template",
        ),
        pytest.param(
            {"podSets": [{"nameFrom": "item.name", "template": "a"}]},
            "spec.podSets[0].name: give name, or with each nameFrom",
            id="a name from nothing",
        ),
        pytest.param(
            {"related": [{"name": "r", "apiVersion": "a.example", "kind": "'A'", "objectName": "'a'"}]},
            "spec.related[0].apiVersion: String should match",
            id="a group without a version",
        ),
        pytest.param(
            {"suspend": {"path": "spec[0]"}}, "spec.suspend.path: String should match", id="no path"
        ),
        pytest.param(
            {"restore": "All"}, "spec.restore: Input should be 'Templates'", id="no word of a field"
        ),
        pytest.param({"loops": 3}, "spec.loops: Extra inputs are not permitted", id="an unknown field"),
        pytest.param(
            {"related": [{"name": "item", "apiVersion": "v1", "kind": "'A'", "objectName": "'a'"}]},
            "spec.related[0].name: item is a name that something else has",
            id="a name that is taken",
        ),
    ],
)
def test_a_kind_that_does_not_work_says_which_field_and_why(changed: Json, expected: str) -> None:
    (found,) = defects(experiment(**changed))["experiment"]
    assert found.startswith(expected)


def test_a_kind_that_does_not_work_harms_no_other() -> None:
    broken = experiment(active="nothing")
    broken["metadata"] = {"name": "broken"}
    broken["spec"]["resource"] = {**broken["spec"]["resource"], "kind": "Broken"}
    kinds = Kinds([broken, experiment(), {"kind": "JobKind"}, {"metadata": {"name": []}}], {})
    assert [each.name for each in kinds.find_all()] == ["experiment"]
    assert {each.name for each in kinds.defects} == {"broken", ""}


def test_the_first_of_two_kinds_has_the_resource() -> None:
    second = experiment()
    second["metadata"] = {"name": "another"}
    words = "spec.resource: lab.example.com/v1 Experiment is described by JobKind experiment already"
    assert defects(experiment(), second) == {"another": [words]}


def test_paths_that_the_definition_lacks_are_named() -> None:
    probe = {
        "type": "object",
        "properties": {
            "copies": {"type": "integer"},
            "template": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    tasks = {"type": "array", "items": probe}
    properties: Json = {"paused": {"type": "boolean"}, "probe": probe, "tasks": tasks}
    spec = {"type": "object", "properties": properties}
    status = {"type": "object", "properties": {"pods": {"type": "integer"}, "phase": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    assert defects(experiment(), schema=schema) == {
        "experiment": ["spec.podSets[0].template: the definition of the kind has no spec.control"]
    }
    properties["control"] = {"type": "object"}
    assert defects(experiment(), schema=schema) == {}
    tasks_of = {"each": "spec.tasks", "nameFrom": "'a'", "template": "templat", "count": "object.spec.copies"}
    for injection, field in (("RuntimePatch", "runtimePatches"), ("PodSetInfos", "components")):
        words = f"spec.injection: the definition of the kind has no spec.{field}"
        assert defects(experiment(injection=injection), schema=schema) == {"experiment": [words]}
    assert defects(experiment(podSets=[tasks_of]), schema=schema)["experiment"] == [
        "spec.podSets[0].template: the definition of the kind has no spec.tasks.*.templat",
        "spec.podSets[0].count: the definition of the kind has no spec.copies",
    ]


@pytest.mark.parametrize(
    ("copies", "words"),
    [
        ("2", "JobKind experiment, spec.podSets[1].count: gives '2', which is no whole number from 0 to"),
        (-1, "gives -1, which is no whole number"),
        (2**31, "gives 2147483648, which is no whole number"),
        (True, "gives True, which is no whole number"),
        (2.5, "gives 2.5, which is no whole number"),
        (None, "gives None, which is no whole number"),
    ],
)
def test_a_count_that_is_none(copies: object, words: str) -> None:
    with pytest.raises(KindError) as raised:
        sets(compiled(), trial(copies=copies))
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("control", "words"),
    [
        (None, "spec.control: Input should be a valid dictionary"),
        ([], "spec.control: Input should be a valid dictionary"),
        ({}, "spec.control.spec: is missing"),
        ({"spec": {"containers": []}}, "spec.control.spec.containers: List should have at least 1 item"),
        ({"spec": {"containers": ["x"]}}, "spec.control.spec.containers[0]: Input should be"),
        (
            template("much"),
            "spec.control.spec.containers[0].resources.requests.cpu: 'much' is not a quantity",
        ),
    ],
)
def test_a_template_that_is_none(control: object, words: str) -> None:
    raw = trial()
    raw["spec"]["control"] = control
    with pytest.raises(KindError) as raised:
        sets(compiled(), raw)
    assert str(raised.value).startswith(words)


def test_a_template_that_is_not_there() -> None:
    raw = trial()
    del raw["spec"]["control"]
    with pytest.raises(KindError, match=r"^spec\.control: is missing$"):
        sets(compiled(), raw)


EACH: Json = {"each": "spec.tasks", "nameFrom": "item.name", "template": "template", "count": "index + 1"}


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ("x", "spec.tasks: must be a list or a map"),
        ([{"name": "a"}] * 257, "spec.tasks: has 257 elements, and at most 256 are read"),
        (
            [{"name": f"t{n}", "template": template()} for n in range(9)],
            "it has more than 8 pod sets, and a Workload",
        ),
        ([{"name": "a", "template": template()}] * 2, "two of its pod sets are called a"),
        (
            [{"name": "a b", "template": template()}],
            "spec.tasks[0]: JobKind experiment, spec.podSets[0].nameFrom: gives 'a b', which no pod set",
        ),
        (
            [{"name": 3, "template": template()}],
            "spec.tasks[0]: JobKind experiment, spec.podSets[0].nameFrom: gives 3, which is no text",
        ),
        (
            [{"template": template()}],
            "spec.tasks[0]: JobKind experiment, spec.podSets[0].nameFrom: the object has no name there",
        ),
        (["x"], "spec.tasks[0]: JobKind experiment, spec.podSets[0].nameFrom: No such overload"),
        ([], "it has no pod sets: there are none at spec.tasks"),
        ([{"name": "a"}], "spec.tasks[0].template: is missing"),
    ],
)
def test_lists_that_can_not_be_gone_through(tasks: object, words: str) -> None:
    with pytest.raises(KindError) as raised:
        sets(compiled(podSets=[EACH]), {**trial(), "spec": {"tasks": tasks}})
    assert words in str(raised.value)


def test_a_list_and_a_map_have_a_pod_set_for_each_element() -> None:
    tasks = [{"name": name, "template": template()} for name in ("B", "a")]
    kind = compiled(podSets=[EACH])
    assert sets(kind, {**trial(), "spec": {"tasks": tasks}}) == {"b": 1, "a": 2}
    by_key = compiled(podSets=[{**EACH, "nameFrom": "key"}])
    assert sets(by_key, {**trial(), "spec": {"tasks": {"Z": tasks[0], "Y": tasks[1]}}}) == {
        "y": 1,
        "z": 2,
    }


def test_a_map_with_keys_that_are_no_texts_as_yaml_may_have_them_is_refused() -> None:
    by_key = compiled(podSets=[{**EACH, "nameFrom": "key"}])
    with pytest.raises(KindError, match=r"spec\.tasks\[1\].*: is missing"):
        sets(by_key, {**trial(), "spec": {"tasks": {"a": SMALL, 1: SMALL}}})


def test_a_large_object_is_refused_in_no_time() -> None:
    kind = compiled(refused=[{"when": "object.spec.tasks.exists(t, t.n > 5)", "message": "no"}])
    raw = trial()
    raw["spec"]["tasks"] = [{"n": 1}] * 200_000
    started = time.process_time()
    with pytest.raises(KindError, match=r"JobKind experiment, spec.refused\[0\].when: what it reads"):
        sets(kind, raw)
    assert time.process_time() - started < 1


SMALL: Json = {"name": "a", "template": template()}
LARGE = {"resources": {"requests": {f"example.com/{n}": 1 for n in range(1_000)}}}


def wrapped(count: int) -> Json:
    wrapper, cluster = example("AppWrapper"), example("RayCluster")
    more = {"enableInTreeAutoscaling": True, "autoscalerOptions": LARGE, "workerGroupSpecs": []}
    cluster["spec"] |= more
    wrapper["spec"]["components"] = [{"template": cluster}] * count
    return wrapper


@pytest.mark.parametrize(
    ("kind", "raw", "words"),
    [
        pytest.param(
            compiled(podSets=[{**EACH, "when": "size(object.spec.large) < 0"}]),
            {**trial(), "spec": {"tasks": [SMALL] * 256, "large": [1] * 20_000}},
            r"spec\.podSets\[0\]\.when: what it reads of the object is too large",
            id="elements that are left out",
        ),
        pytest.param(
            compiled(podSets=[{**EACH, "when": "size(object.spec.large) < 0"}]),
            {
                **trial(),
                "spec": {"tasks": [SMALL] * 256, "large": {f"a{n}": {"n": 1} for n in range(39_000)}},
            },
            r"spec\.podSets\[0\]\.when: what it reads of the object is too large",
            id="large maps",
        ),
        pytest.param(
            compiled(podSets=[EACH]),
            {**trial(), "spec": {"tasks": [SMALL] * 9 + [{"name": []}]}},
            "it has more than 8 pod sets",
            id="elements beyond those of a Workload",
        ),
        pytest.param(
            kind_of(example("AppWrapper")),
            wrapped(8),
            "what it reads of the object is too large",
            id="objects within an object",
        ),
    ],
)
def test_what_expressions_cost_is_bounded_for_the_whole_object(
    kind: CompiledKind, raw: Json, words: str
) -> None:
    assert len(pod_sets(wrapped(1))) == 1, "one of eight alone is counted"
    started = time.process_time()
    with pytest.raises(KindError, match=words):
        assert pod_sets(raw) if kind.name == "appwrapper" else sets(kind, raw)
    assert time.process_time() - started < 2


def test_a_large_runtime_of_a_trainjob_is_refused_in_no_time() -> None:
    runtime, train = example("ClusterTrainingRuntime", "trainjob"), example("TrainJob")
    jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    runtime["spec"]["template"]["spec"]["replicatedJobs"] = [jobs[1] | {"name": f"n{n}"} for n in range(256)]
    train["spec"]["trainer"] = {"resourcesPerNode": {"requests": {f"e.com/{n}": 1 for n in range(20_000)}}}
    started = time.process_time()
    with pytest.raises(KindError, match="what it reads of the object is too large"):
        kind_of(train).pod_sets(train, lambda *_: runtime, lambda *_: None)
    assert time.process_time() - started < 2


def test_an_object_in_another_is_not_described_by_a_third() -> None:
    """That may change while nothing says so, and its pods would run without the labels of an admission."""
    wrapper = example("AppWrapper")
    wrapper["spec"]["components"] = [{"template": example("TrainJob")}]
    words = r"spec\.components\[0\]: a TrainJob has its pods described by a further object"
    with pytest.raises(KindError, match=words):
        pod_sets(wrapper)


def test_an_object_within_itself_comes_to_an_end() -> None:
    wrapper = example("AppWrapper")
    inner = copy.deepcopy(wrapper)
    wrapper["spec"]["components"] = [{"template": inner}]
    with pytest.raises(KindError, match=r"no JobKind describes kubeflow\.org/v1 PyTorchJob"):
        pod_sets(wrapper)


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ("x", "spec.components[1].podSets: must be a list of at most 8 pod sets"),
        ([{"replicas": "2", "path": "template"}], "spec.components[1].podSets[0].replicas: must be"),
        ([{"path": "template..spec"}], "spec.components[1].podSets[0].path: 'template..spec' is no path"),
        ([{"path": "template.spec[0].no"}], "spec.components[1].template.spec[0].no: is missing"),
        ([{"path": "metadata"}], "spec.components[1].metadata: is missing"),
    ],
)
def test_pod_sets_that_an_appwrapper_declares(declared: object, words: str) -> None:
    wrapper = example("AppWrapper")
    wrapper["spec"]["components"][1]["podSets"] = declared
    with pytest.raises(KindError) as raised:
        pod_sets(wrapper)
    assert words in str(raised.value)


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Where each value in an object stands."""
    inner: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [path, *(place for step, below in inner for place in places(below, (*path, step)))]


def changed(manifest: Json, path: tuple[str | int, ...], value: object) -> Json:
    made: Any = copy.deepcopy(manifest)
    place = made
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return dict(made)


ODD: st.SearchStrategy[Any] = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        2**31,
        2**70,
        1.5,
        "",
        "x",
        "9" * 400,
        [],
        [None],
        ["x"] * 300,
        {},
        {"a": {}},
        [[[[]]]],
    ]
)
FILES = sorted(path.stem for path in EXAMPLES.glob("*.yaml") if path.stem != "queue")
KINDS = {
    kind.lower(): kind
    for kind in (
        *("JobSet", "TrainJob", "PyTorchJob", "TFJob", "XGBoostJob", "MPIJob"),
        *("RayCluster", "RayJob", "AppWrapper", "SparkApplication"),
    )
}


@pytest.mark.parametrize("file", FILES)
@given(data=st.data())
@settings(max_examples=examples(60))
def test_whatever_stands_in_an_object_is_counted_or_named(file: str, data: st.DataObject) -> None:
    manifest = example(KINDS[file])
    inside = [path for path in places(manifest["spec"]) if path]
    path = data.draw(st.sampled_from(inside))
    manifest["spec"] = changed(manifest["spec"], path, data.draw(ODD))
    with suppress(KindError, InvalidQuantityError):  # the latter is reported as that of a Job
        for each in pod_sets(manifest):
            made = pod_set(each.name, each.template["spec"], each.count, (), {})
            assert made["count"] == each.count

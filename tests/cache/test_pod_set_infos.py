"""What stands beside the components of an AppWrapper, whatever users and its status say."""

from typing import Any

import pytest

from admitter.cache.pod_set_infos import NotSaidError, PlaceError, changes, own_parts, without_own
from admitter.names import WORKLOAD_LABEL

Json = dict[str, Any]

HERE = ("spec", "components", 0)
FIRST = (*HERE, "template", "spec", "jobs", 0, "template")
SECOND = (*HERE, "template", "spec", "jobs", 1, "template")
PART: Json = {
    "metadata": {"labels": {WORKLOAD_LABEL: "w"}},
    "spec": {"nodeSelector": {"a": "b"}, "tolerations": []},
}
INFO: Json = {"labels": {WORKLOAD_LABEL: "w"}, "nodeSelector": {"a": "b"}}
PATHS = ("template.spec.jobs[0].template", "template.spec.jobs[1].template")


def wrapper(*paths: str, infos: object = None) -> Json:
    component: Json = {
        "template": {"kind": "JobSet"},
        **({"podSetInfos": infos} if infos is not None else {}),
    }
    told = [{"podSets": [{"path": path} for path in paths]}]
    return {"spec": {"components": [component]}, "status": {"componentStatus": told}}


def test_each_entry_stands_where_the_status_has_its_template() -> None:
    for paths, expected in ((PATHS, [{}, INFO]), (PATHS[::-1], [INFO, {}])):
        raw = wrapper(*paths)
        assert list(changes(raw, {SECOND: PART})) == [(HERE, {"podSetInfos": expected})]
        raw["spec"]["components"][0]["podSetInfos"] = expected
        first, second = own_parts(raw, [FIRST, SECOND])
        assert (first, second) == ({"metadata": {}}, {"metadata": {"labels": INFO["labels"]}})


def test_what_the_controller_has_written_is_taken_away_and_what_a_user_has_stays() -> None:
    own, users = wrapper(*PATHS, infos=[{}, INFO]), wrapper(*PATHS, infos=[{"labels": {"a": "b"}}])
    assert list(changes(own, {})) == [(HERE, {"podSetInfos": None})]
    assert without_own(own)["spec"] == wrapper()["spec"]
    assert list(changes(users, {})) == []
    assert without_own(users) is users


def test_a_template_of_which_the_operator_knows_nothing_is_named() -> None:
    words = r"adds nothing to spec\.components\[0\]\.template\.spec\.jobs\[1\]\.template: name template\.spec"
    for paths in ((), PATHS[:1], ("", "template..a", "template[99999]")):
        with pytest.raises(PlaceError, match=words):
            list(changes(wrapper(*paths), {SECOND: PART}))
    with pytest.raises(PlaceError, match=r"spec\.template is in none of spec\.components"):
        list(changes(wrapper(*PATHS), {("spec", "template"): PART}))


@pytest.mark.parametrize("status", [None, {}, {"componentStatus": None}, {"componentStatus": []}], ids=str)
def test_without_a_word_of_the_operator_there_is_nothing_to_write_yet(status: Json | None) -> None:
    with pytest.raises(NotSaidError):
        list(changes({**wrapper(*PATHS), "status": status}, {SECOND: PART}))


@pytest.mark.parametrize(
    "infos", ["no list", [], [None, None], [{}, {"labels": 3, "annotations": []}]], ids=str
)
def test_whatever_stands_there_has_marks_only_where_it_can_have_some(infos: object) -> None:
    raw = wrapper(*PATHS, infos=infos)
    assert list(own_parts(raw, [FIRST, SECOND, ()])) == [{"metadata": {}}] * 3
    assert list(changes(raw, {})) == []


@pytest.mark.parametrize("components", [None, {}, ["no component", {}]], ids=str)
def test_an_object_without_components_has_nothing_to_take_away(components: object) -> None:
    raw: Json = {"spec": {"components": components}}
    assert list(changes(raw, {})) == []
    assert without_own(raw) is raw

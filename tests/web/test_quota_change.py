"""What a tried change of quota writes: valid objects, and the changed fields alone."""

import json
from shlex import split
from typing import Any

import pytest
import yaml

from admitter.api.base import problems
from admitter.api.cluster_queue import ClusterQueue
from admitter.cache.views import ObjectView
from admitter.insight.snapshot_file import facts
from admitter.web.quota_change import QuotaChange, Refused, Wish, changed, commands, manifest, patches
from tests.insight.states import Json, State

GPU = "nvidia.com/gpu"


def views(**more: Any) -> dict[str, ObjectView]:
    state = State("a100", "t4")
    quota: dict[str, dict[str, Json]] = {
        GPU: {"a100": {"min": "8", "max": "12"}, "t4": {}},
        "cpu": {"a100": {"min": 4}, "t4": {"min": "2"}},
    }
    state.queue("vision", quota, "research", **more)
    state.queue("speech", {GPU: {"a100": {"min": "4"}}}, "research", fairSharing={"weight": 2})
    known = facts(state.snapshot()).views["clusterqueues"]
    return {name: known["", name] for name in ("vision", "speech")}


def wish(queue: str, place: str, value: str) -> Wish:
    if place == "weight":
        return Wish(queue=queue, part="weight", value=value)
    resource, flavor, part = place.split("|")
    return Wish.model_validate(
        {"queue": queue, "resource": resource, "flavor": flavor, "part": part, "value": value}
    )


def tried(*wishes: tuple[str, str, str], **more: Any) -> QuotaChange:
    return changed(views(**more), [wish(*each) for each in wishes])


def patched(spec: Json, steps: list[Json]) -> Json:
    """What an API server makes of a JSON patch."""
    document: Any = json.loads(json.dumps({"spec": spec}))
    for step in steps:
        *way, last = step["path"].strip("/").split("/")
        place = document
        for each in way:
            place = place[int(each) if isinstance(place, list) else each]
        match step["op"]:
            case "test":
                assert place[last] == step["value"]
            case "remove":
                del place[last]
            case "replace":
                assert last in place
                place[last] = step["value"]
            case _:
                assert last not in place
                place[last] = step["value"]
    made: Json = document["spec"]
    return made


@pytest.mark.parametrize(
    ("place", "value", "steps"),
    [
        (f"{GPU}|a100|min", "10", [("replace", "/spec/resources/0/flavors/0/quota/min", 10)]),
        (f"{GPU}|a100|max", "", [("remove", "/spec/resources/0/flavors/0/quota/max", None)]),
        (f"{GPU}|t4|max", "3", [("add", "/spec/resources/0/flavors/1/quota/max", 3)]),
        ("cpu|t4|min", "2500m", [("replace", "/spec/resources/1/flavors/1/quota/min", "2500m")]),
        ("weight", "3", [("add", "/spec/fairSharing", {"weight": 3})]),
    ],
)
def test_only_what_changes_is_in_the_patch(place: str, value: str, steps: list[tuple[str, str, Any]]) -> None:
    change = tried(("vision", place, value))
    assert change.refused == ()
    (made,) = change.objects
    assert problems(ClusterQueue, made) == []
    patch = change.patches["vision"]
    done = [(each["op"], each["path"], each.get("value")) for each in patch if each["op"] != "test"]
    assert done == steps
    assert patched(views()["vision"].spec, patch) == made["spec"]
    assert yaml.safe_load(manifest(change)) == made
    (command,) = commands(change)
    words = split(command)
    assert words[:5] == ["kubectl", "patch", "clusterqueues.admitter.dev", "vision", "--type=json"]
    assert json.loads(words[5].removeprefix("--patch=")) == patch == yaml.safe_load(patches(change))


def test_a_patch_fails_where_the_list_is_another_one_by_then() -> None:
    patch = tried(("vision", f"{GPU}|t4|min", "3")).patches["vision"]
    other = views()["vision"].spec
    other = {**other, "resources": list(reversed(other["resources"]))}
    with pytest.raises(AssertionError):
        patched(other, patch)


def test_what_stays_as_it_is_is_left_out() -> None:
    same = [
        ("vision", f"{GPU}|a100|min", "8.0"),
        ("vision", f"{GPU}|t4|min", "0"),
        ("vision", "weight", "1000m"),
    ]
    change = tried(*same, ("vision", f"{GPU}|t4|max", ""), ("speech", f"{GPU}|a100|min", "5"))
    assert [each["metadata"]["name"] for each in change.objects] == ["speech"]
    assert list(change.patches) == ["speech"]
    assert change.refused == ()


def test_several_queues_are_several_documents() -> None:
    change = tried(
        ("vision", f"{GPU}|a100|min", "6"), ("vision", "weight", "2"), ("speech", f"{GPU}|a100|min", "6")
    )
    first, second = yaml.safe_load_all(manifest(change))
    assert first["spec"]["fairSharing"] == {"weight": 2}
    assert second["metadata"] == {"name": "speech"}
    assert [
        patched(views()[n].spec, steps)
        for n, steps in zip(("vision", "speech"), yaml.safe_load_all(patches(change)), strict=True)
    ] == [
        first["spec"],
        second["spec"],
    ]


@pytest.mark.parametrize(
    ("place", "value", "part", "message"),
    [
        (f"{GPU}|a100|min", "13", "max", "max 12 is less than min 13"),
        (f"{GPU}|a100|min", "many", "min", "'many' is not a quantity"),
        (f"{GPU}|a100|min", "", "min", "a quantity is empty"),
        (f"{GPU}|a100|min", "-1", "min", "'-1' is negative"),
        (f"{GPU}|a100|max", "0.1234567891234", "max", "0.1234567891234 has more digits than a quantity"),
        (
            "weight",
            "<img src=x onerror=alert(1)>",
            "weight",
            "'<img src=x onerror=alert(1)>' is not a quantity",
        ),
        (f"{GPU}|h100|min", "1", "min", f"the queue has no quota of its own of {GPU} in flavor h100"),
    ],
)
def test_what_the_api_would_refuse_is_refused_at_its_number(
    place: str, value: str, part: str, message: str
) -> None:
    refused = tried(("vision", place, value)).refused
    assert message in refused[0].message
    resource, flavor = ("", "") if place == "weight" else tuple(place.split("|")[:2])
    assert refused[0] == Refused("vision", resource, flavor, part, refused[0].message)


def test_names_can_not_leave_their_place_in_a_command() -> None:
    state = State()
    name = "x'; rm -rf /\n#"
    state.queue(name, {"cpu": {"default": {"min": "1"}}})
    view = facts(state.snapshot()).views["clusterqueues"]["", name]
    change = changed({name: view}, [wish(name, "cpu|default|min", "2")])
    (command,) = commands(change)
    assert split(command)[3] == name
    assert patches(change).splitlines()[0].startswith("# kubectl patch clusterqueues.admitter.dev")
    assert yaml.safe_load(patches(change)) == change.patches[name]

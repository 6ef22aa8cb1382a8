"""YuniKorn's access control lists, as roles."""

from typing import Any

import pytest

from admitter.importers.translation import Fidelity
from tests.importers.importing import imported
from tests.importers.trial import account, by_name, words

ANY_RANK = ("Group", "system:authenticated")


def tree(root: str = "", inner: str = "", leaf: str = "") -> str:
    """A configuration of root, a and a.b; each part says which users may submit there."""
    return f"""
partitions:
- queues:
  - name: root
    {root}
    queues:
    - name: a
      {inner}
      queues:
      - name: b
        {leaf}
      - name: c
"""


def granted(text: str, *more: str) -> dict[str, set[tuple[str, str]]]:
    """The users that may submit, by the names of LocalQueues; `*` stands for all."""
    into = imported("yunikorn", text, *more)
    roles: dict[str, Any] = {}
    for name, role in by_name(into, "ClusterRole").items():
        (rule,) = role["rules"]
        assert (rule["apiGroups"], rule["resources"], rule["verbs"]) == (
            ["admitter.dev"],
            ["localqueues"],
            ["submit"],
        )
        roles[name] = ",".join(rule.get("resourceNames", ["*"]))
    bindings = by_name(into, "ClusterRoleBinding").values()
    assert [binding["roleRef"]["name"] for binding in bindings] == list(roles)
    return {
        roles[binding["roleRef"]["name"]]: {(each["kind"], each["name"]) for each in binding["subjects"]}
        for binding in bindings
    }


def test_without_lists_there_are_no_roles() -> None:
    assert granted(tree()) == {}


@pytest.mark.parametrize(
    ("acl", "subjects"),
    [
        ("'*'", {ANY_RANK}),
        ("sue", {("User", "sue")}),
        ("sue,bob dev,test", {("User", "sue"), ("User", "bob"), ("Group", "dev"), ("Group", "test")}),
        ("' dev'", {("Group", "dev")}),
    ],
    ids=["all users", "a user", "users and groups", "a group"],
)
def test_a_list_at_the_root_is_for_all_queues_there_ever_are(
    acl: str, subjects: set[tuple[str, str]]
) -> None:
    assert granted(tree(f"submitacl: {acl}")) == {"*": subjects}


@pytest.mark.parametrize("acl", ["' '", "''"], ids=["a space", "nothing"])
def test_a_list_without_users_makes_no_role(acl: str) -> None:
    assert granted(tree(f"submitacl: {acl}")) == {}


def test_a_user_that_may_submit_above_may_submit_below() -> None:
    assert granted(tree(inner="submitacl: sue", leaf="submitacl: ' dev'")) == {
        "a.b": {("User", "sue"), ("Group", "dev")},
        "a.c": {("User", "sue")},
    }


def test_where_all_users_may_at_the_root_no_other_list_says_more() -> None:
    assert granted(tree(root="submitacl: '*'", leaf="submitacl: sue")) == {"*": {ANY_RANK}}


def test_all_users_in_the_list_of_a_queue_are_all_users_of_that_queue() -> None:
    assert granted(tree(root="submitacl: bob", leaf="submitacl: '*'")) == {
        "*": {("User", "bob")},
        "a.b": {ANY_RANK},
    }


def test_an_administrator_of_a_queue_may_submit_to_it_and_its_other_powers_are_approximated() -> None:
    text = tree(leaf="adminacl: sue")
    assert granted(text) == {"a.b": {("User", "sue")}}
    into = imported("yunikorn", text)
    field = "partitions[0].queues[0].queues[0].queues[0].adminacl"
    assert account(into)[field] is Fidelity.APPROXIMATED
    assert "administrators" in words(into, field)


def test_a_list_above_a_namespace_is_for_the_queue_that_the_namespace_gets() -> None:
    finance = """
apiVersion: v1
kind: Namespace
metadata: {name: finance, annotations: {yunikorn.apache.org/parentqueue: root.a}}
"""
    text = "partitions: [{queues: [{name: root, queues: [{name: a, parent: true, submitacl: ' money'}]}]}]"
    assert granted(text, finance) == {"finance": {("Group", "money")}}


@pytest.mark.parametrize(
    ("acl", "outcome", "word"),
    [
        ("'*'", Fidelity.TRANSLATED, "submit"),
        ("sue", Fidelity.APPROXIMATED, "admitter-submitter"),
        ("' '", Fidelity.APPROXIMATED, "no user"),
        ("a b c", Fidelity.REFUSED, "a space"),
        ("[sue]", Fidelity.REFUSED, "must be a text"),
    ],
)
def test_lists_are_accounted_for(acl: str, outcome: Fidelity, word: str) -> None:
    into = imported("yunikorn", tree(leaf=f"submitacl: {acl}"))
    field = "partitions[0].queues[0].queues[0].queues[0].submitacl"
    assert account(into)[field] is outcome
    assert word in words(into, field)

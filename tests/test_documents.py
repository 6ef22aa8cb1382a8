"""Manifests as users keep them: what is no manifest is said, whatever it is."""

import pytest

from admitter.documents import ManifestError, parsed


def read(text: str) -> list[object]:
    return [document for _, document in parsed("here", text)]


def bomb(levels: int) -> str:
    """A list of ten aliases of a list of ten aliases, and so on."""
    lines = ["a0: &a0 x"]
    for level in range(1, levels + 1):
        aliases = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} [{aliases}]")
    return "\n".join(lines)


def merging_bomb(levels: int) -> str:
    """The same by merged maps, which are written out while they are read."""
    lines = ["a0: &a0 {x: 1}"]
    for level in range(1, levels + 1):
        aliases = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} {{<<: [{aliases}]}}")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("spec: &a {namespaceSelector: *a}", "here: line 1: has an alias of itself"),
        ("x: 1\nlist: &a\n- - *a", "here: line 2: has an alias of itself"),
        ("[" * 3000 + "]" * 3000, "here: is nested more than 100 levels deep"),
        ("[" * 101 + "]" * 101, "here: is nested more than 100 levels deep"),
        (bomb(40), "here: its aliases stand for more than 1000000 values"),
        (merging_bomb(40), "here: its aliases stand for more than 1000000 values"),
        ("a: [", "here: is no YAML"),
        ("a: !!int x", "here: is no YAML"),
        ("a: !!bool x", "here: is no YAML"),
        ("a: 1" + "0" * 5000, "here: is no YAML"),
        ("a: !!set {x}", "here: is no YAML"),
        ("a: !!timestamp x", "here: is no YAML"),
    ],
    ids=[
        "alias of itself",
        "alias of a list above",
        "very deep",
        "a level too deep",
        "aliases of aliases",
        "merged aliases",
        "no YAML",
        "no number",
        "no truth value",
        "a number without end",
        "a set",
        "a time",
    ],
)
def test_what_can_not_be_read_is_said_with_its_place(text: str, says: str) -> None:
    with pytest.raises(ManifestError) as caught:
        read(text)
    assert str(caught.value).startswith(says)


def test_aliases_stand_for_what_they_name() -> None:
    assert read("{a: &a {x: 1}, b: *a, c: {<<: *a, y: 2}}") == [
        {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1, "y": 2}}
    ]
    assert len(read("---\na: 1\n---\n---\nb: 2013-01-01\n")) == 2


def test_a_hundred_levels_are_not_too_deep() -> None:
    assert read("[" * 100 + "]" * 100)

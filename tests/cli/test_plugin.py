"""`kubectl admitter`, and what a shell offers behind it."""

import pytest

from admitter.cli.plugin import complete


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["expl"], {"explain"}),
        (["pau"], {"pause"}),
        (["sandbox", ""], {"up", "down"}),
        (["what-if", "--fail"], {"--fail-on"}),
        (["what-if", "--fail-on", ""], {"evict", "over", "never"}),
        (["get", "workloads", "-o", "wi"], {"wide"}),
    ],
    ids=["command", "verb", "subcommand", "option", "value", "part-of-a-value"],
)
def test_words_that_may_follow_are_offered(typed: list[str], offered: set[str]) -> None:
    assert offered <= {line.split("\t")[0] for line in complete(typed)}


def test_each_is_explained() -> None:
    (line,) = complete(["expl"])
    assert line.startswith("explain\tSay why a Job waits")
    (option,) = complete(["what-if", "--fail"])
    assert option.startswith("--fail-on\tExit with 3")
    assert option.endswith("May be repeated."), "a long one is one line all the same"


def test_nothing_is_offered_where_anything_may_stand() -> None:
    assert complete(["explain", "tra"]) == []

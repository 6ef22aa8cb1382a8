"""Expressions are bounded before they are compiled, and what they cost is known before they run."""

import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitter.api.job_kind import LONGEST_EXPRESSION
from admitter.kinds.expressions import MOST_COST, Budget, Expression, ExpressionError
from tests.scale import examples

OBJECT = {"spec": {"n": 3, "text": "4G", "list": [{"n": 1}, {"n": 5}], "map": {"a": {"n": 2}}, "zero": 0}}


def value(source: str, obj: Any = OBJECT) -> Any:
    return Expression(source, {"object"}).value({"object": obj}, Budget())


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("object.spec.n * 2", 6),
        ("[object.spec.n, 2].min() + [1, 5].max()", 7),
        ("has(object.spec.no) ? object.spec.no : 7", 7),
        ("object.spec.list.exists(x, x.n > 4)", True),
        ("object.spec.list.filter(x, x.n > 1).map(x, x.n)[0]", 5),
        ("object.spec.map.all(k, object.spec.map[k].n == 2)", True),
        ("int(object.spec.text.lowerAscii().replace('g', '')) * 1024", 4096),
        ("'n' in object.spec", True),
        ("{'cpu': string(object.spec.n)}", {"cpu": "3"}),
        ("object['spec'].n", 3),
        ("!" * 1000 + "true", True),
    ],
)
def test_what_an_expression_gives(source: str, expected: Any) -> None:
    assert value(source) == expected


@pytest.mark.parametrize(
    ("source", "words"),
    [
        pytest.param("object.spec.", "Syntax error", id="does not compile"),
        pytest.param("1" * (LONGEST_EXPRESSION + 1), "more than 1024 characters", id="long"),
        pytest.param("(" * 40 + "1" + ")" * 40, "more than 12 levels of brackets", id="deep"),
        pytest.param("spec.n", "no variable spec here: these are object", id="a variable"),
        pytest.param(".object.spec", "a dot that follows nothing", id="a variable from the root"),
        pytest.param("object.spec.n.exec('id')", "calls exec", id="a function"),
        pytest.param("optional.of(1)", "calls of", id="a function of another library"),
        pytest.param("__import__('os')", "calls __import__", id="Python"),
        pytest.param("r'\\d'", "can't be read at", id="raw text"),
        pytest.param("'''a'''", "write texts as 'text'", id="text in three quotes"),
        pytest.param("'a\\'b'", "can't be read at", id="an escaped quote"),
        pytest.param("1 // object.spec.list.map(", "has a comment", id="a comment"),
        pytest.param("Message{a: 1}", "makes a message", id="a message"),
        pytest.param("object.l.map(x, object.l.map(y, y))", "macro map in a macro", id="a macro in a macro"),
        pytest.param("object.l.map(x, x + x)", r"has \+ in a macro", id="a sum in a macro"),
        pytest.param("object.l.map(x, [x, x])", "a list in a macro", id="a list in a macro"),
        pytest.param("object.l.map(x, {'a': x})", "has { in a macro", id="a map in a macro"),
        pytest.param("object.l.map(object, object)", "gives object another meaning", id="a hidden variable"),
    ],
)
def test_what_is_refused_before_it_runs(source: str, words: str) -> None:
    with pytest.raises(ExpressionError, match=words):
        Expression(source, {"object"})


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("object.spec.no.deeper", "the object has no no there"),
        ("object.spec.n.deeper", "No such overload"),
        ("object.spec.text + 1", "Unsupported operation"),
        ("object.spec.n / object.spec.zero", "division by zero"),
        ("9223372036854775807 + object.spec.n", "overflow"),
        ("object.spec.list[7]", "out of bounds"),
        ("int(object.spec.text)", "invalid digit"),
        ("[object.spec.n, 'a'].min() + 1", "Unsupported operation: null"),
        ("[].max() + 1", "Unsupported operation: null"),
        ("object.spec.text.replace('G', 'GG') + 'a'", "Unsupported operation: null"),
        ("object.spec.text.matches('(')", "not a valid regex"),
        ("object.spec.text.matches('((a{1000}){1000}){1000}')", "not a valid regex"),
    ],
)
def test_what_gives_no_value(source: str, words: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ExpressionError, match=words):
        value(source)
    assert capfd.readouterr() == ("", "")


def test_only_what_is_read_counts() -> None:
    expression = Expression("object.spec.n + size(object.spec.map['a']) + object.spec.n", {"object"})
    assert expression.reads == (("object", "spec", "map"), ("object", "spec", "n"))
    large = OBJECT | {"spec": {**OBJECT["spec"], "list": ["x"] * 1_000_000}}
    started = time.process_time()
    assert expression.value({"object": large}, Budget()) == 7
    assert time.process_time() - started < 0.1


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("object.spec.list.map(x, object.spec.list).all(x, size(x) > 0)", id="copies of a list"),
        pytest.param("size(object.spec.list" + " + object.spec.list" * 50 + ") > 0", id="a long sum"),
        pytest.param("[" + "object, " * 20 + "object].map(x, x).map(x, x)", id="copies of the object"),
        pytest.param("(object.spec.list + object.spec.list).map(x, object)", id="an object for each element"),
    ],
)
def test_what_would_cost_too_much_is_refused_at_once(source: str) -> None:
    expression = Expression(source, {"object"})
    small, large = ({"spec": {"list": [{"n": n} for n in range(many)]}} for many in (2, 20_000))
    expression.value({"object": small}, Budget())
    started = time.process_time()
    with pytest.raises(ExpressionError, match="too large"):
        expression.value({"object": large}, Budget())
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    "source",
    [
        "object.list.map(x, object.list)",
        "object.list.map(x, object.list).map(x, object.list)",
        "object.list.map(x, object.list).filter(x, x == object.list).map(x, object.list)",
        "object.list.filter(x, object.list == object.list && x in object.list)",
    ],
)
def test_the_dearest_object_that_is_allowed_takes_little_time(source: str) -> None:
    """Macros that copy their list for each element, as often as the bound allows."""
    expression = Expression(source, {"object"})
    elements = 1
    while expression.cost([{"list": [1] * (elements + 1)}]) <= MOST_COST:
        elements += 1
    started = time.process_time()
    assert len(expression.value({"object": {"list": [1] * elements}}, Budget())) == elements
    assert time.process_time() - started < 0.1


PARTS = st.sampled_from(
    [
        *(
            "object",
            ".spec",
            ".n",
            ".list",
            ".map",
            ".text",
            "x",
            "k",
            "1",
            "0",
            "2.5",
            "'a'",
            "true",
            "null",
        ),
        *(
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            ",",
            ":",
            "?",
            "+",
            "-",
            "*",
            "/",
            "%",
            "!",
            "==",
            "<",
            "&&",
            "||",
            " in ",
        ),
        *(
            ".map(x, ",
            ".filter(x, ",
            ".all(k, ",
            ".exists(x, ",
            "has(",
            "size(",
            "int(",
            "double(",
            "string(",
        ),
        *(".min()", ".max()", ".replace(", ".matches(", ".startsWith(", ".lowerAscii()", " ", "\\", '"', "'"),
    ]
)
SOURCES = st.lists(PARTS, max_size=24).map("".join) | st.text(max_size=60)


@given(source=SOURCES)
@settings(max_examples=examples(300))
def test_whatever_is_written_gives_a_value_or_a_reason(source: str) -> None:
    started = time.process_time()
    with suppress(ExpressionError):
        value(source)
    assert time.process_time() - started < 1


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abn"), inner, max_size=3),
    max_leaves=12,
)


MANY = st.sampled_from(
    [
        "object.spec.list.filter(x, x.n > 1).map(x, x.n).max() * object.spec.n",
        "object.spec.map.exists(k, object.spec.map[k] == object.spec.text)",
        "int(object.spec.text.lowerAscii().replace('g', '')) / object.spec.zero",
        "{'a': object.spec.list, 'b': [object.spec.map, object.spec.n].min()}",
    ]
)


@given(source=MANY, spec=st.dictionaries(st.sampled_from(["n", "text", "list", "map", "zero"]), JSON))
@settings(max_examples=examples(100))
def test_whatever_an_object_has_gives_a_value_or_a_reason(source: str, spec: dict[str, Any]) -> None:
    with suppress(ExpressionError):
        value(source, {"spec": spec})

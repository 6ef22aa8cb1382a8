"""JSON that the fast parser refuses is read all the same, without what is odd in it."""

import math

import pytest

from admitter.client.decoding import DEEPEST, decoded


def test_usual_json_is_what_it_says() -> None:
    assert decoded(b'{"a": [1, 2.5, null, "\xc3\xa4"]}') == {"a": [1, 2.5, None, "ä"]}


def test_what_is_nested_too_deep_is_left_out_and_the_rest_is_there() -> None:
    deep = b"[" * 5_000 + b"]" * 5_000
    found = decoded(b'{"deep": ' + deep + b', "text": "[{[{ \\" ]", "after": {"b": [1]}}')
    assert (found["text"], found["after"]) == ('[{[{ " ]', {"b": [1]})
    levels, place = 0, found["deep"]
    while place and place[0] is not None:
        place, levels = place[0], levels + 1
    assert levels < DEEPEST


def test_halves_of_characters_are_replaced_and_whole_ones_are_kept() -> None:
    text = b'["\\ud800", "a\\udfffb", "\\ud83d\\ude00", "\\\\ud800"]'
    assert decoded(text) == ["\ufffd", "a\ufffdb", "\U0001f600", "\\ud800"]


def test_numbers_that_no_machine_has_are_infinite() -> None:
    assert decoded(b"[" + b"9" * 5_000 + b", 1e400]") == [math.inf, math.inf]


@pytest.mark.parametrize("text", [b"", b'{"a": 1', b"[1, 2", b'"a', b"[" * 5_000])
def test_what_is_cut_off_is_no_json(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"Expecting|Unterminated|cut off"):
        decoded(text)

"""What an expression needs of an object: nothing else of it is handed to the library, or costs anything."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

MAKING_LISTS: Final = frozenset({"map", "filter"})
MACROS: Final = MAKING_LISTS | {"all", "exists", "exists_one"}
"""What goes through a list, element by element."""
_EACH: Final = "*"
"""In the path of a field: of each element of the list there."""
_PRESENT: Final = "?"
"""At the end of a path: only whether there is anything."""

Tree = dict[str, Any]
"""Fields of a value that an expression needs; one without any is needed as a whole."""
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Token:
    """A token of an expression: a `text`, `number`, `name` or `sign`."""

    kind: str
    text: str

    @property
    def ends(self) -> bool:
        """Whether a value ends here, so that what follows belongs to it."""
        return self.kind in {"name", "text", "number"} or self.text in {")", "]", "}"}


def fields(tokens: Sequence[Token], place: int) -> Iterator[str]:
    """The names behind a variable, up to a call or an index."""
    while len(tokens) > place + 1 and tokens[place].text == "." and tokens[place + 1].kind == "name":
        if len(tokens) > place + 2 and tokens[place + 2].text == "(":
            return
        yield tokens[place + 1].text
        place += 2


def needed(tokens: Sequence[Token], reads: Collection[Path]) -> Iterator[Path]:
    """The paths in `reads`, with what is needed of what stands there."""
    texts = [each.text for each in tokens]
    variables = {path[0] for path in reads}
    for place, token in enumerate(tokens):
        if token.kind != "name" or token.text not in variables or texts[place - 1 : place] == ["."]:
            continue
        path = (token.text, *fields(tokens, place + 1))
        end = place + 2 * len(path) - 1
        if texts[max(0, place - 2) : place] == ["has", "("] and texts[end : end + 1] == [")"]:
            yield (*path, _PRESENT)
        elif _is_macro(texts, end):
            yield from ((*path, *each) for each in _of_elements(tokens, texts, end))
        else:
            yield path


def _is_macro(texts: Sequence[str], place: int) -> bool:
    """Whether a macro of the value before is at a place."""
    found = texts[place : place + 3]
    return len(found) == 3 and found[0] == "." and found[1] in MACROS and found[2] == "("


def _of_elements(tokens: Sequence[Token], texts: Sequence[str], place: int) -> set[Path]:
    """What a macro, and those that follow it, need of the list that it goes through."""
    level, end = 1, place + 3
    while level and end < len(texts):
        level += (texts[end] in "([{") - (texts[end] in ")]}")
        end += 1
    found: set[Path] = {(_EACH, _PRESENT)}
    for at in range(place + 4, end):
        if tokens[at].kind == "name" and texts[at] == texts[place + 3] and texts[at - 1] != ".":
            found.add((_EACH, *fields(tokens, at + 1)))
    if texts[place + 1] == "filter":  # its elements are those of the list
        found |= _of_elements(tokens, texts, end) if _is_macro(texts, end) else {()}
    return found


def trees(paths: Iterable[Path]) -> Tree:
    """What is needed, by names."""
    root: Tree = {}
    whole: list[Path] = []
    for path in sorted(set(paths)):  # a path comes before those that it begins
        if any(path[: len(each)] == each for each in whole):
            continue
        whole.append(path)
        tree = root
        for name in path:
            tree = tree.setdefault(name, {})
    return root


def picked(value: object, tree: Tree, most: int) -> object:
    """What is needed of a value; a longer list is given as it is."""
    if not tree:
        return value
    if tree.keys() == {_PRESENT}:
        return value is not None or None
    if isinstance(value, Mapping):
        if _EACH in tree:
            return value
        return {name: picked(value[name], below, most) for name, below in tree.items() if name in value}
    if isinstance(value, list) and _EACH in tree and len(value) <= most:
        return [picked(each, tree[_EACH], most) for each in value]
    return value


def extent(values: Iterable[object], most: int) -> tuple[int, int]:
    """How many values there are in some, long texts for several, and the most elements of a list or map.

    It looks no further once there are more than `most`.
    """
    size = longest = 0
    left = list(values)
    while left and size <= most:
        value = left.pop()
        size += 1
        if isinstance(value, str):
            size += len(value) // 32
        elif isinstance(value, Mapping):
            longest = max(longest, len(value))
            left += value.values()
        elif isinstance(value, list):
            longest = max(longest, len(value))
            left += value
    return size, longest

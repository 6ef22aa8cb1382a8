"""Changes valid objects in ways that a reader may not expect: a pure function of a seed.

A change has a class (`CLASSES`): digits, units, types, depth, characters, sizes, missing and further fields,
empty and doubled lists, times, and the names that Admitter reads. What comes out is JSON text, as it travels:
some of it no parser of Python's would write, such as halves of characters.

Three fields are never changed to those of another object: `metadata.name`, `namespace` and `uid`. The end of
an object is told by them, and one that is told under another name never ends. They become unreadable instead.
`metadata.resourceVersion` stays what it is: a watch goes on from there, and by it versions have an order.
"""

import copy
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from admitter import names

Json = dict[str, Any]
Path = tuple[str | int, ...]

MOST_CHANGES: Final = 4
LARGE: Final = (10_000, 20_000, 300_000)
FEW: Final = 100
"""Lists of no more items are made longer."""
LARGEST: Final = 1_500_000
"""Characters: an API server stores no more of one object."""
DEPTHS: Final = (20, 260, 900, 1_100, 3_000)
_RAW: Final = "\u2063raw:"
"""Before a text that is put into the JSON as it is, without quotes."""
_MARKED: Final = re.compile(r'"\\u2063raw:((?:[^"\\]|\\.)*)"')

DIGITS: Final = (
    *(0, -1, 2**31, 2**63, -(2**63), 2**64, 10**30, 0.5, -0.0),
    *(f"{_RAW}{text}" for text in ("9" * 5_000, "1e400", "-1e400", "1e-400", "1E5", "NaN", "Infinity")),
    *("9" * 5_000, "-1", "1e400", "NaN", "inf", "0x10", "٣", "1_000", " 1", "+1", "1e", "--1", "9" * 19),
)
UNITS: Final = (
    *("9E", "9Ei", "1e400", "0.0000000001n", "Ki", "1KiKi", "1 Gi", "-5m", "1e99", "1.5.5", "m", "0", "00"),
    *("1e-99", "١Gi", "1gi", "1Zi", ".", "-", "", "1Gi\n", "9" * 64, "0." + "9" * 40 + "Ei"),
)
TYPES: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    "text",
    7,
    1.5,
    [],
    {},
    [[]],
    ["a", 1, None],
    {"a": {"b": None}},
    [{}],
)
CHARACTERS: Final = (
    *(
        "",
        " ",
        "\u0000",
        "\u202eabc",
        "\U0001f4a3" * 20,
        "\ufeff",
        "a\u0301",
        "\x1b[31m",
        "{{.}}",
        "$(x)",
        "'\"\\",
    ),
    *(f'{_RAW}"\\ud800"', f'{_RAW}"a\\udfffb"', "%s%n", "../..", "a/b/c", "\u2028\u2029", "İ", "ﷺ" * 9),
)
TIMES: Final = (
    *(
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-14:00",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
    ),
    *(
        "0001-01-01T00:00:00Z",
        "2026-13-45T99:99:99Z",
        "2026-01-01T00:00:00",
        "yesterday",
        "",
        "1969-12-31T23:59:59Z",
    ),
    *("2026-01-01", "2026-01-01T00:00:00.123456789123Z", 1_700_000_000, "262144-01-01T00:00:00Z"),
)
READ: Final = tuple(
    sorted({value for name, value in vars(names).items() if name.endswith(("_LABEL", "_ANNOTATION"))})
    + [
        each
        for group in (names.NAMESPACE_QUOTA_ANNOTATIONS, names.PARENT_QUEUE_ANNOTATIONS)
        for each in group
    ]
    + sorted(names.DEPRECATED_QUOTA_ANNOTATIONS)
    + [*names.NAMESPACE_WEIGHT_RESOURCES, names.GPU_MEMORY, *names.GPU_MEMORY_ALIASES]
)
"""All labels, annotations and resources that Admitter reads."""
NOTES: Final = (
    *(
        "[" * 100_000,
        "{}",
        "[]",
        "null",
        '{"cpu": "-1"}',
        '{"cpu": 1e400}',
        '{"user": "\\ud800"}',
        '{"user": 1}',
    ),
    *(
        '{"nodeSelector": {"a": null}, "tolerations": [null]}',
        '{"cpu": {"cpu": {}}}',
        "x" * 60_000,
        "9" * 5_000,
    ),
)
_AMOUNTS: Final = frozenset(
    ("requests", "limits", "usage", "min", "max", "hard", "allocatable", "podFixed", "default", "quota")
)
_OF_TIME: Final = ("Time", "Timestamp", "At", "until", "since")
_IDENTITY: Final = frozenset({"name", "namespace", "uid"})
_KEPT: Final = frozenset({("apiVersion",), ("kind",), ("metadata",), ("metadata", "resourceVersion")})
"""Without these no watch can go on: they say what an event is about, and where to go on."""


@dataclass(frozen=True)
class Mutated:
    """A changed object.

    Attributes:
        text: as it travels.
        classes: of its changes.
    """

    text: bytes
    classes: tuple[str, ...]


def paths(value: Any, before: Path = ()) -> Iterator[Path]:  # whatever JSON has
    """The places in a value that may be changed, in their order."""
    if before and before not in _KEPT:
        yield before
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from paths(each, (*before, key))


def _place(value: Any, path: Path) -> Any:  # as above
    for key in path:
        value = value[key]
    return value


def _put(made: Json, path: Path, value: Any) -> None:  # as above
    """Put a value at a place; the names of an object never become those of another."""
    if path[0] == "metadata" and len(path) == 2 and path[1] in _IDENTITY and isinstance(value, str | None):
        value = [value]
    _place(made, path[:-1])[path[-1]] = copy.deepcopy(value)


def _anywhere(made: Json, random: Random) -> Path:
    """Any place; a further field if nothing is left that may be changed."""
    return random.choice([*paths(made)] or [("further",)])


def _replacing(values: tuple[Any, ...]) -> "Change":
    def change(made: Json, random: Random) -> None:
        _put(made, _anywhere(made, random), random.choice(values))

    return change


def _quantities(made: Json, random: Random) -> None:
    found = [path for path in paths(made) if _AMOUNTS.intersection(map(str, path[:-1]))]
    _put(made, random.choice(found) if found else _anywhere(made, random), random.choice(UNITS))


def _times(made: Json, random: Random) -> None:
    found = [path for path in paths(made) if str(path[-1]).endswith(_OF_TIME)]
    _put(made, random.choice([*found, ("metadata", "creationTimestamp")]), random.choice(TIMES))


def _depth(made: Json, random: Random) -> None:
    levels = random.choice(DEPTHS)
    opened, closed = random.choice((("[", "]"), ('{"a":', "}")))
    inner = "1" if opened != "[" else ""
    _put(made, _anywhere(made, random), f"{_RAW}{opened * levels}{inner}{closed * levels}")


def _sizes(made: Json, random: Random) -> None:
    size = random.choice(LARGE)
    lists: tuple[Any, ...] = (
        "x" * size,
        ["y" * 50] * (size // 60),
        {f"k{i}": "v" * 40 for i in range(size // 60)},
    )
    _put(made, _anywhere(made, random), random.choice(lists))


def _missing(made: Json, random: Random) -> None:
    found = [path for path in paths(made) if isinstance(path[-1], str)]
    found = [path for path in found if path != ("metadata", "namespace")]
    if not found:
        return _further(made, random)
    path = random.choice(found)
    del _place(made, path[:-1])[path[-1]]
    return None


def _further(made: Json, random: Random) -> None:
    maps = [(), *(path for path in paths(made) if isinstance(_place(made, path), dict))]
    key = random.choice(("extra", "x" * 300, "\u202e", "", "spec", "__proto__", "admitter.dev/none"))
    value = random.choice(TYPES)
    place = _place(made, random.choice(maps))
    if key not in place:
        place[key] = copy.deepcopy(value)


def _lists(made: Json, random: Random) -> None:
    found = [path for path in paths(made) if isinstance(_place(made, path), list)]
    if not found:
        return _further(made, random)
    path = random.choice(found)
    each = _place(made, path)
    times = random.choice((2, 50)) if len(each) <= FEW else 1
    _put(made, path, random.choice(([], each * times, [None], [each], dict(enumerate(each)))))
    return None


def _names(made: Json, random: Random) -> None:
    part = random.choice(("labels", "annotations"))
    templates = [path for path in paths(made) if path[-1] == "template"]
    places = [place for path in [(), *templates] if isinstance(place := _place(made, path), dict)]
    metadata = random.choice(places).setdefault("metadata", {})
    if isinstance(metadata, dict) and isinstance(metadata.setdefault(part, {}), dict):
        value = random.choice((*NOTES, *CHARACTERS, *UNITS, *TIMES, *TYPES))
        metadata[part][random.choice(READ)] = copy.deepcopy(value)


Change = Callable[[Json, Random], None]
CLASSES: Final[dict[str, Change]] = {
    "digits": _replacing(DIGITS),
    "units": _quantities,
    "types": _replacing(TYPES),
    "depth": _depth,
    "characters": _replacing(CHARACTERS),
    "sizes": _sizes,
    "missing": _missing,
    "further": _further,
    "lists": _lists,
    "times": _times,
    "names": _names,
}
"""The classes of changes."""


def mutated(valid: Json, seed: str) -> Mutated:
    """A valid object with one to four changes; of the same seed always the same."""
    random = Random(seed)
    made: Json = json.loads(json.dumps(valid))
    chosen = tuple(random.choice(list(CLASSES)) for _ in range(random.randint(1, MOST_CHANGES)))
    text = ""
    for each in chosen:
        CLASSES[each](made, random)
        changed = _text(made)
        if text and len(changed) > LARGEST:
            break
        text = changed
    return Mutated(text.encode(), chosen)


def _text(value: Json) -> str:
    """A value as JSON, with texts put in as they are that are marked so."""
    return _MARKED.sub(lambda found: str(json.loads(f'"{found[1]}"')), json.dumps(value))

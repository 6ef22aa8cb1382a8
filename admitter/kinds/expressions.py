"""Expressions of JobKinds: a bounded part of the Common Expression Language, compiled once.

The library evaluates without a limit of its own, so that an expression is bounded before: by its length and
depth, by the functions that it may call, and by where it may use what grows. With that, what an evaluation
costs is at most the product in `Expression.cost`, and an object is refused once all evaluations about it cost
too much together.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from admitter.api.job_kind import LONGEST_EXPRESSION
from admitter.kinds.picking import MACROS, MAKING_LISTS, Token, extent, fields, needed, picked, trees

MOST_LEVELS: Final = 12
"""Brackets within brackets."""
MOST_COST: Final = 400_000
"""Values that evaluations about one object may copy: they copy some twenty in a microsecond."""
_READ: Final = 80
"""What a value costs that an evaluation sees, in copies: handing it to the library takes up to 4 µs."""
_CHECKED: Final = 20
"""What a value of a pod template costs: it is checked, and what is kept of it is copied, in up to 1 µs."""

MOST_SEEN: Final = MOST_COST // _READ
"""Values that one evaluation may see: whatever has more costs too much."""

_LIBRARY: Final = frozenset(
    {*("has", "size", "int", "double", "string"), *("startsWith", "endsWith", "contains", "matches")}
)
_WORDS: Final = frozenset({"true", "false", "null", "in"})
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<text>"[^"\\\n]*"|'[^'\\\n]*')|(?P<number>[0-9]+(?:\.[0-9]+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>==|!=|<=|>=|&&|\|\||[-+*/%!<>?:.,()\[\]{}]))""",
    re.VERBOSE,
)
_ERRORS: Final = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError)
"""What the library raises while it compiles and evaluates."""


class ExpressionError(Exception):
    """An expression that can't be used, or gives no value that can; the words say why."""


class Budget:
    """What the evaluations about one object may still cost."""

    def __init__(self) -> None:
        self._left = MOST_COST

    def take(self, cost: int) -> None:
        """Take the cost of one more.

        Raises:
            ExpressionError: so much is not left.
        """
        self._left -= cost
        if self._left < 0:
            raise ExpressionError("what it reads of the object is too large")

    def take_template(self, template: object) -> None:
        """Take what reading a pod template costs; ExpressionError as above."""
        self.take(_CHECKED * extent([template], MOST_COST // _CHECKED)[0])


class Expression:
    """A compiled expression."""

    def __init__(self, source: str, variables: Collection[str]) -> None:
        """Compile it.

        Raises:
            ExpressionError: it does not compile, uses more than these variables, or could cost too much.
        """
        if len(source) > LONGEST_EXPRESSION:
            raise ExpressionError(f"has more than {LONGEST_EXPRESSION} characters")
        tokens = list(_tokens(source))
        bound, macros = _macros(tokens)
        self._repeats = bool(macros)
        self._lists = sum(each in MAKING_LISTS for each in macros)
        self._terms = sum(each.kind != "sign" for each in tokens)
        self._sums = sum(each.text == "+" for each in tokens)
        self._calls = _called(tokens) & _FUNCTIONS.keys()
        # the fields that it reads, each as the variable and the names from there
        self.reads = tuple(sorted(set(_reads(tokens, variables, bound))))
        self._trees = trees(needed(tokens, self.reads))
        import cel  # noqa: PLC0415  # slow to load, and needed where a JobKind is alone

        self._context = cel.Context
        try:
            self._program = cel.compile(source)
        except _ERRORS as error:
            raise ExpressionError(f"does not compile: {_first_line(error)}") from error

    def value(self, variables: Mapping[str, object], budget: Budget) -> Any:  # noqa: ANN401  # whatever it gives
        """What it gives; variables that it does not use are not looked at.

        Raises:
            ExpressionError: it gives nothing, or would cost too much.
        """
        seen = {name: picked(variables[name], tree, MOST_SEEN) for name, tree in self._trees.items()}
        budget.take(self.cost(seen.values()))
        functions = {name: _FUNCTIONS[name] for name in self._calls}
        try:
            return self._program.execute(self._context(seen, functions) if functions else seen)
        except KeyError as error:
            raise ExpressionError(f"the object has no {str(error.args[0])[:100]} there") from error
        except _ERRORS as error:
            raise ExpressionError(_first_line(error)) from error

    def cost(self, values: Iterable[object]) -> int:
        """The most values that an evaluation copies, with those that it only sees counted as several.

        Each term gives at most all values, and a sum copies what it adds. A macro repeats its terms for each
        element: of a list in the object, of several that are added, or of one that the expression writes out.
        One that makes a list copies with each element what it has of that list, which is at most all values
        for each element before. No macro is within another, and none makes its elements larger.
        """
        size, longest = extent(values, MOST_SEEN)
        elements = longest * (1 + self._sums) + self._terms
        copies = 1 + self._sums + (elements if self._repeats else 0)
        return size * (_READ + self._terms * copies + self._lists * elements**2)


def renamed(source: str, names: Mapping[str, str], prefix: str) -> str:
    """An expression with other variables by name, and a prefix to what follows `variables.`."""
    made, before = "", ["", ""]
    for match in _TOKEN.finditer(source.rstrip()):
        kind, text = str(match.lastgroup), match[0]
        word = text.lstrip()
        if kind == "name" and before[1] != ".":
            text = text.removesuffix(word) + names.get(word, word)
        elif kind == "name" and before == ["variables", "."]:
            text = text.removesuffix(word) + prefix + word
        made += text
        before = [before[1], word]
    return made


def _tokens(source: str) -> Iterator[Token]:
    """The tokens; other forms of text and comments are refused, in which brackets would mean nothing."""
    place, before = 0, None
    rest = source.rstrip()
    while place < len(rest):
        match = _TOKEN.match(rest, place)
        if match is None:
            raise ExpressionError(f"can't be read at {rest[place:].strip()[:20]!r}")
        token = Token(str(match.lastgroup), match[str(match.lastgroup)])
        touching = before is not None and match.start(str(match.lastgroup)) == place
        if (
            token.kind == "text"
            and before is not None
            and before.kind in {"text", "name", "number"}
            and touching
        ):
            raise ExpressionError(f"can't be read at {token.text[:20]!r}: write texts as 'text'")
        if token.text == "/" and touching and before is not None and before.text == "/":
            raise ExpressionError("has a comment")
        yield token
        place, before = match.end(), token


def _macros(tokens: Sequence[Token]) -> tuple[frozenset[str], list[str]]:
    """The variables that macros bind, and the macros.

    Raises:
        ExpressionError: it is nested too deeply, or a macro has in it what would make its cost grow.
    """
    bound: set[str] = set()
    macros: list[str] = []
    level = inside = 0
    for place, token in enumerate(tokens):
        before = tokens[place - 1] if place else None
        if inside and token.text in {"+", "{"} and token.kind == "sign":
            raise ExpressionError(f"has {token.text} in a macro")
        if inside and token.text == "[" and token.kind == "sign" and not (before and before.ends):
            raise ExpressionError("has a list in a macro")
        if token.text == "{" and before and before.kind == "name":
            raise ExpressionError("makes a message")
        if token.kind == "sign" and token.text in "([{":
            level += 1
            if level > MOST_LEVELS:
                raise ExpressionError(f"has more than {MOST_LEVELS} levels of brackets")
            called = before is not None and token.text == "(" and before.text in MACROS
            if called and before is not None and place > 1 and tokens[place - 2].text == ".":
                if inside:
                    raise ExpressionError(f"has macro {before.text} in a macro")
                inside = level
                macros.append(before.text)
                bound |= {each.text for each in tokens[place + 1 : place + 2] if each.kind == "name"}
        elif token.kind == "sign" and token.text in ")]}":
            inside = 0 if inside == level else inside
            level -= 1
    return frozenset(bound), macros


def _called(tokens: Sequence[Token]) -> frozenset[str]:
    """The functions that are called.

    Raises:
        ExpressionError: there is no such function.
    """
    pairs = pairwise(tokens)
    called = frozenset(name.text for name, after in pairs if name.kind == "name" and after.text == "(")
    unknown = called - _LIBRARY - MACROS - _FUNCTIONS.keys() - _WORDS
    if unknown:
        raise ExpressionError(f"calls {min(unknown)}, which is no function here")
    return called


def _reads(
    tokens: Sequence[Token], variables: Collection[str], bound: Collection[str]
) -> Iterator[tuple[str, ...]]:
    """The fields that are read.

    Raises:
        ExpressionError: there is no such variable, or a macro binds one that there is.
    """
    taken = set(bound) & set(variables)
    if taken:
        raise ExpressionError(f"a macro gives {min(taken)} another meaning")
    for place, token in enumerate(tokens):
        follows = tokens[place - 1].text == "." if place else False
        called = [each.text for each in tokens[place + 1 : place + 2]] == ["("]
        if token.text == "." and not (place and tokens[place - 1].ends):
            raise ExpressionError("has a dot that follows nothing")
        if token.kind != "name" or token.text in _WORDS or follows or called:
            continue
        if token.text in variables:
            yield (token.text, *fields(tokens, place + 1))
        elif token.text not in bound:
            known = ", ".join(sorted(variables))
            raise ExpressionError(f"there is no variable {token.text[:40]} here: these are {known}")


def _first_line(error: Exception) -> str:
    """What an error of the library says first, with the place if it names one."""
    placed = re.search(r"<input>:[0-9]+:([0-9]+): (.*)", str(error))
    words = f"{placed[2]} (at character {placed[1]})" if placed else re.split(r"\n|\. ", str(error))[0]
    return words[:200]


def _numbers(values: object) -> list[int | float] | None:
    """The numbers in a list that has nothing else; the library reports what a function raises by itself."""
    alike = isinstance(values, list) and values and {type(each) for each in values} in ({int}, {float})
    return values if alike else None  # type: ignore[return-value]  # that is what it checks


def _least(values: object = None) -> object:
    found = _numbers(values)
    return min(found) if found is not None else None


def _greatest(values: object = None) -> object:
    found = _numbers(values)
    return max(found) if found is not None else None


def _lower(value: object = None) -> object:
    return value.lower() if isinstance(value, str) else None


def _without(value: object = None, old: object = None, new: object = None) -> object:
    if isinstance(value, str) and isinstance(old, str) and old and new == "":
        return value.replace(old, "")
    return None  # a longer text could grow


_FUNCTIONS: Final = {"min": _least, "max": _greatest, "lowerAscii": _lower, "replace": _without}
"""Functions of the API server's dialect that the library lacks; they give null for what they can't use."""

"""The generated part of docs/reference/cli.md: every command with its arguments, options and examples."""

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, NamedTuple

import typer

from admitter.cli.main import app
from tools.docs.tables import table

_EXAMPLES: Final = re.compile(r"^Examples:\n((?:- .*(?:\n  .*)*\n?)+)\Z", re.MULTILINE)
_EXAMPLE: Final = re.compile(r"^- `([^`]+)`:? *((?:.|\n  )*)$", re.MULTILINE)
_NAMES: Final = re.compile(r"(?<![\w`/.-])(--[a-z][a-z-]+|docs/[a-z/-]+\.md)(?![\w`])")


class Example(NamedTuple):
    """A command line that a help shows."""

    line: str
    words: str
    """What it is for; empty if the line says it."""


class Documented(NamedTuple):
    """A command, or a group of commands."""

    path: str
    """As it is typed, such as `admitter sandbox up`."""
    command: Any
    """The library's object: its parameters, its help."""

    @property
    def is_group(self) -> bool:
        """Whether it only has commands below it."""
        return hasattr(self.command, "commands")

    @property
    def _help(self) -> str:
        return inspect.cleandoc(self.command.help or "")

    @property
    def meaning(self) -> str:
        """What it does: its help without the examples."""
        return _EXAMPLES.sub("", self._help).strip()

    @property
    def examples(self) -> list[Example]:
        """The examples at the end of its help."""
        found = _EXAMPLES.search(self._help)
        pairs = _EXAMPLE.findall(found.group(1)) if found else []
        return [Example(line, " ".join(words.split())) for line, words in pairs]


def commands(command: Any = None, path: str = "admitter") -> Iterator[Documented]:  # noqa: ANN401  # the library's
    """All commands and groups but other names of a command, each group before what is in it."""
    top = typer.main.get_command(app) if command is None else command
    yield Documented(path, top)
    for name, each in getattr(top, "commands", {}).items():
        if not each.hidden:
            yield from commands(each, f"{path} {name}")


def lines() -> Iterator[str]:
    """The lines of the page below its mark."""
    every = list(commands())
    yield ""
    yield "## Commands"
    yield ""
    listed = [each for each in every if not each.is_group]
    yield from table(
        ("command", "what it is for"), ([_link(each), _coded(_first(each.meaning))] for each in listed)
    )
    for each in every:
        yield from _section(each)


def _section(documented: Documented) -> Iterator[str]:
    yield ""
    yield f"## {documented.path}"
    yield ""
    yield _coded(documented.meaning)
    parameters = documented.command.params
    arguments = [each for each in parameters if each.param_type_name == "argument"]
    options = [each for each in parameters if each.param_type_name == "option"]
    if not documented.is_group:
        shown = [_argument(each) for each in arguments]
        yield ""
        yield "```"
        yield " ".join([documented.path, *(["[OPTIONS]"] if options else []), *shown])
        yield "```"
    if arguments:
        yield ""
        rows = ([f"`{_argument(each)}`", _coded(each.help or "")] for each in arguments)
        yield from table(("argument", "meaning"), rows)
    if options:
        yield ""
        yield from table(("option", "value", "default", "meaning"), map(_option, options))
    if documented.examples:
        yield ""
        yield "Examples:"
        yield ""
        for line, words in documented.examples:
            yield f"- `{line}`: {_coded(words)}" if words else f"- `{line}`"


def _link(documented: Documented) -> str:
    anchor = documented.path.replace(" ", "-")
    return f"[`{documented.path}`](#{anchor})"


def _first(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


def _coded(text: str) -> str:
    """Help has options and pages as plain words; a page shows the first as code and links to the second."""

    def shown(match: re.Match[str]) -> str:
        word = match[1]
        if word.startswith("--"):
            return f"`{word}`"
        page = word.removeprefix("docs/")
        return f"[{page.removesuffix('.md')}](../{page})"

    return _NAMES.sub(shown, text)


def _argument(parameter: Any) -> str:  # noqa: ANN401  # the library's
    name = (parameter.metavar or parameter.name).removesuffix("...").upper()
    several = "..." if parameter.nargs != 1 else ""
    return f"{name}{several}" if parameter.required else f"[{name}]{several}"


def _option(parameter: Any) -> list[str]:  # noqa: ANN401  # the library's
    names = ", ".join(f"`{name}`" for name in parameter.opts)
    return [names, _value(parameter), _default(parameter), _coded(parameter.help or "")]


def _value(parameter: Any) -> str:  # noqa: ANN401  # the library's
    """What stands behind an option; nothing behind a flag."""
    if parameter.is_flag:
        return ""
    kind = parameter.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(f"`{member.value}`" for member in kind)
    limits = [str(limit) for limit in (parameter.min, parameter.max) if limit is not None]
    word = parameter.metavar or parameter.name.upper()
    between = f", {' to '.join(limits)}" if len(limits) == 2 else f", at least {limits[0]}" if limits else ""
    return f"`{word}`{between}"


def _default(parameter: Any) -> str:  # noqa: ANN401  # the library's
    default = parameter.default
    if default in (None, False) or not parameter.show_default:
        return ""
    return f"`{default.value if isinstance(default, Enum) else default}`"

"""Something that happens in one part, and concerns parts that are made after it and may need it in turn."""

from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Signal(Generic[P]):
    """Called when it happens; calls all that listen, in the order in which they began to."""

    def __init__(self) -> None:
        self._listeners: list[Callable[P, None]] = []

    def listen(self, listener: Callable[P, None]) -> None:
        self._listeners.append(listener)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for listener in self._listeners:
            listener(*args, **kwargs)

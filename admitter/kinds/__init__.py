"""Kinds that are described instead of coded: what a JobKind says of an object (docs/design/kinds.md).

No client and no clock: objects come in as JSON, pod sets go out.
"""


class KindError(Exception):
    """An object that can't be counted; the words name the field of the object or of its JobKind."""

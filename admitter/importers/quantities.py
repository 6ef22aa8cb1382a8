"""Maps of quantities by resource, as most systems write them."""

from admitter.api.base import is_resource
from admitter.importers.translation import ManifestSource, below
from admitter.quantities.amounts import InvalidQuantityError, parse_quantity


def quantities(source: ManifestSource, path: str, names: dict[str, str] | None = None) -> dict[str, str]:
    """Quantities by resource, as they are written; what is none is refused, the rest is left to the caller.

    Args:
        source: the object.
        path: where they are.
        names: our names of resources that have other names there.
    """
    found: dict[str, str] = {}
    for theirs, quantity in source.mapping(path).items():
        name = (names or {}).get(theirs, theirs)
        text = "".join(str(quantity).split())
        why = _wrong(name, quantity, text)
        if why:
            source.refused(below(path, theirs), why)
        else:
            found[name] = text
    return found


def cut(
    source: ManifestSource,
    path: str,
    least: dict[str, str],
    most: dict[str, str],
    names: dict[str, str] | None = None,
) -> None:
    """Cut what is promised to what may be used at most, and refuse it by name where it is more.

    Args:
        source: the object.
        path: where the promised quantities are.
        least: these quantities.
        most: the most of each resource.
        names: as for `quantities`.
    """
    theirs = {ours: name for name, ours in (names or {}).items()}
    for name, quantity in least.items():
        if name in most and parse_quantity(most[name]) < parse_quantity(quantity):
            place = below(path, theirs.get(name, name))
            source.refused(place, f"is more than the most that may be used, {most[name]}, which counts")
            least[name] = most[name]


def _wrong(name: str, quantity: object, text: str) -> str | None:
    if not is_resource(name):
        return "this is no name of a resource"
    if isinstance(quantity, bool) or not isinstance(quantity, (str, int, float)):
        return f"must be a quantity, not {quantity!r}"
    try:
        parse_quantity(text)
    except InvalidQuantityError as error:
        return str(error)
    return None

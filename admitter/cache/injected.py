"""What an admission has put into an object, wherever its JobKind says that it goes (`Injection`).

Next: `admitter.policy.injection` writes it, `admitter.policy.restoration` takes it out.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from admitter.api.job_kind import Injection
from admitter.cache import pod_set_infos, runtime_patches

if TYPE_CHECKING:
    from admitter.kinds.compiled import FoundPodSet

Json = dict[str, Any]


def without_injected(raw: Json, injection: Injection) -> Json:
    """The object without what is put in beside its templates; what is in them stays."""
    match injection:
        case Injection.RUNTIME_PATCH:
            return runtime_patches.without_own(raw)
        case Injection.POD_SET_INFOS:
            return pod_set_infos.without_own(raw)
        case Injection.TEMPLATES:
            return raw


def injected_parts(raw: Json, injection: Injection, found: Sequence["FoundPodSet"]) -> list[Json]:
    """For each pod set the part of a template in which the labels and annotations of an admission stand.

    A template in another object has none: what is there is a user's.
    """
    match injection:
        case Injection.RUNTIME_PATCH:
            parts = runtime_patches.own_parts(raw)
            return [parts.get(each.name, {}) for each in found]
        case Injection.POD_SET_INFOS:
            return list(pod_set_infos.own_parts(raw, [each.place or () for each in found]))
        case Injection.TEMPLATES:
            return [{} if each.place is None else each.template for each in found]

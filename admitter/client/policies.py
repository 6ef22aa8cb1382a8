"""In which version an API server has the policies that change objects, if in any.

Kubernetes has MutatingAdmissionPolicy as v1 since 1.36. In 1.34 and 1.35 it is v1beta1, which administrators
can turn on; what is alpha, as in 1.33, is not used.
"""

from typing import TYPE_CHECKING, Final

from admitter.client.errors import NotFoundError

if TYPE_CHECKING:
    from admitter.client.transport import Transport

GROUP: Final = "admissionregistration.k8s.io"
VERSIONS: Final = ("v1", "v1beta1")
"""Those that are used, the best one first; objects that are made in one are there in all."""
MUTATING: Final = {
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}
"""Kinds to their plurals."""
NOT_SERVED: Final = (
    "this API server has no MutatingAdmissionPolicy: the controller alone suspends queued Jobs, a moment "
    "after their creation, and believes what Jobs say of their user"
)


async def mutating_version(transport: "Transport") -> str | None:
    """The version in which an API server has the policies that change objects; None: it has none.

    Raises:
        ClusterError: the API server does not answer.
    """
    for version in VERSIONS:
        try:
            listed = await transport.get(f"/apis/{GROUP}/{version}")
        except NotFoundError:
            continue
        if any(each["kind"] in MUTATING for each in listed["resources"]):
            return version
    return None

"""Waiting until the API server acts by policies that have been installed: it takes them up a moment later."""

import json
from uuid import uuid4

from admitter.kinds.policies import ADMISSION
from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.objects import Json
from tests.cluster.waiting import eventually


def await_validation(cluster: Cluster) -> None:
    """Wait until every ValidatingAdmissionPolicy that exists is in force.

    The API server learns of policies in the order of their creation, and takes up all that it knows at once.
    So a last one, which refuses a namespace of a name of its own, shows that those before it are in force.

    Raises:
        AssertionError: the policies are not in force in time.
    """
    name = f"last-policy-{uuid4().hex[:6]}"
    head: Json = {"apiVersion": ADMISSION, "metadata": {"name": name}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["namespaces"], "operations": ["CREATE"]}
    refusal = {"expression": f"object.metadata.name != '{name}'", "message": f"{name} is in force"}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [refusal]}
    bound = {"policyName": name, "validationActions": ["Deny"]}
    sorts = {"ValidatingAdmissionPolicy": spec, "ValidatingAdmissionPolicyBinding": bound}
    made = [{**head, "kind": kind, "spec": each} for kind, each in sorts.items()]
    last = json.dumps({"apiVersion": "v1", "kind": "List", "items": made})
    cluster.run_kubectl("create", "-f-", content=last)
    namespace = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def is_refused() -> bool:
        try:
            cluster.run_kubectl("create", "-f-", "--dry-run=server", content=namespace)
        except KubectlError as error:
            return refusal["message"] in str(error)
        return False

    eventually(is_refused, what="validating policies in force")
    cluster.run_kubectl("delete", "-f-", "--ignore-not-found", "--wait=false", content=last)

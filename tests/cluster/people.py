"""Users of a namespace, played by impersonation: the administrator asks in their name."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.objects import Json
from tests.cluster.waiting import eventually

JOBS = {"apiGroups": ["batch"], "resources": ["jobs", "cronjobs"], "verbs": ["*"]}
"""A rule that lets make Jobs, and no more."""


@dataclass(frozen=True)
class Person:
    """A user with a role of its own in one namespace.

    Attributes:
        cluster: where.
        namespace: where the user has the role.
        name: as the API server knows the user.
        groups: beside those that everybody is in.
    """

    cluster: Cluster
    namespace: str
    name: str
    groups: tuple[str, ...] = ()

    def may(self, *rules: Json) -> "Person":
        """Give the user rules in the namespace; they add to its present ones."""
        number = len(self.cluster.read("roles", f"--namespace={self.namespace}")["items"])
        name, scope = f"role-{number}", {"namespace": self.namespace}
        group = "rbac.authorization.k8s.io"
        role = {
            "apiVersion": f"{group}/v1",
            "kind": "Role",
            "metadata": {"name": name, **scope},
            "rules": rules,
        }
        binding = {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": name, **scope},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [{"apiGroup": group, "kind": "User", "name": self.name}],
        }
        items = {"apiVersion": "v1", "kind": "List", "items": [role, binding]}
        self.cluster.run_kubectl("create", "--filename=-", content=json.dumps(items))
        for rule in rules:
            for named in rule.get("resourceNames", ("",)):
                self._known(rule["verbs"][0], rule["resources"][0], rule["apiGroups"][0], named)
        return self

    def submits_to(self, *queues: str) -> "Person":
        """Let the user submit to some queues, or to all."""
        rule: Json = {"apiGroups": ["admitter.dev"], "resources": ["localqueues"], "verbs": ["submit"]}
        return self.may(rule | ({"resourceNames": list(queues)} if queues else {}))

    def edits(self) -> "Person":
        """Give the user the role `edit`."""
        scope = f"--namespace={self.namespace}"
        command = ["create", "rolebinding", f"edit-{self.name}", "--clusterrole=edit", f"--user={self.name}"]
        self.cluster.run_kubectl(*command, scope)
        self._known("create", "jobs", "batch")
        return self

    def kubectl(self, *arguments: str, content: str = "") -> str:
        """Run kubectl as the user in the namespace."""
        return self.cluster.run_kubectl(
            *arguments, *self._asking(), f"--namespace={self.namespace}", content=content
        )

    def makes(self, manifest: Json, *options: str) -> Json:
        """What becomes of a manifest that the user creates."""
        command = ["create", "--filename=-", "--output=json", *options]
        made: Json = json.loads(self.kubectl(*command, content=json.dumps(manifest)))
        return made

    def patches(self, kind: str, name: str, change: Json) -> Json:
        """What becomes of an object that the user changes by a merge patch."""
        patch = ["patch", kind, name, "--type=merge", f"--patch={json.dumps(change)}", "--output=json"]
        made: Json = json.loads(self.kubectl(*patch))
        return made

    def _known(self, verb: str, resource: str, group: str, named: str = "") -> None:
        """Wait until the API server knows that the user may do this; it learns of roles from a watch."""
        kind, _, part = resource.partition("/")
        asked = [verb, f"{kind}.{group}/{named}".rstrip("./"), *([f"--subresource={part}"] if part else [])]

        def may() -> bool:
            try:
                return self.kubectl("auth", "can-i", *asked).strip() == "yes"
            except KubectlError:
                return False

        eventually(may, what=f"{self.name} to be known as a user that may {verb} {resource}")

    def _asking(self) -> Sequence[str]:
        return [f"--as={self.name}", *(f"--as-group={group}" for group in self.groups)]


def may_create(user: Cluster, namespace: str, kind: str) -> bool:
    """Whether the API server lets a user make objects of a kind in a namespace."""
    try:
        answer = user.run_kubectl("auth", "can-i", "create", kind, f"--namespace={namespace}")
    except KubectlError:  # kubectl fails if the answer is no
        return False
    return answer.strip() == "yes"

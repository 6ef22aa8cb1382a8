"""The API server of one team: it keeps Workloads, and refuses admissions of a controller of the past."""

from typing import Any

from admitter.api.workload import WorkloadStatus
from admitter.cache.views import parse_workload
from admitter.cache.world import workload_path
from admitter.client.errors import api_error
from admitter.policy.lifecycle import Phase, phase_of
from tests.apiserver.server import ApiServer

Json = dict[str, Any]

TEAM = "team"
WRITE_SECONDS = 0.01
WATCH_SECONDS = 0.02


class Server(ApiServer):
    """Keeps Workloads of one namespace, by name.

    Attributes:
        epoch: of the controller that leads: admissions of any other are refused.
        moves: the phases before and after each change of a Workload.
    """

    def __init__(self) -> None:
        super().__init__(WRITE_SECONDS)
        self.epoch = 0
        self.moves: set[tuple[Phase, Phase]] = set()
        self.make("/api/v1/namespaces", {"metadata": {"name": TEAM}})
        self.policies.append(self._check)
        self.listen(self._note_move)

    def copy(self) -> "Server":
        """Another one that holds the same."""
        other = Server()
        other.objects["workloads"].update(self.objects["workloads"])
        other.version = self.version
        return other

    @property
    def workloads(self) -> dict[str, Json]:
        """All Workloads as they are, by name."""
        return {name: raw for (_, name), raw in self.objects["workloads"].items()}

    def submit(self, name: str, spec: Json) -> None:
        """A user makes a Workload."""
        collection = workload_path((TEAM, name)).rpartition("/")[0]
        self.make(collection, {"metadata": {"name": name}, "spec": spec})

    def change(self, name: str, spec: Json) -> None:
        """A user changes what a Workload asks for."""
        self.write(workload_path((TEAM, name)), {"spec": spec})

    def drop(self, name: str) -> None:
        """A user deletes a Workload."""
        self.remove(workload_path((TEAM, name)))

    def _check(self, plural: str, before: Json | None, after: Json | None) -> None:
        if plural == "workloads" and before is not None and after is not None and "status" in after:
            WorkloadStatus.model_validate(after["status"])  # else the API server would prune it
            admission = after["status"].get("admission")
            new = admission is not None and not (before.get("status") or {}).get("admission")
            if new and admission["epoch"] != self.epoch:
                raise api_error(403, {})

    def _note_move(self, plural: str, before: Json | None, after: Json | None) -> None:
        if plural == "workloads" and before is not None and after is not None:
            self.moves.add((phase_of(parse_workload(before)), phase_of(parse_workload(after))))

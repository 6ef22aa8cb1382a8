"""What Kubernetes does with Jobs: pods of those that may run are made, and end; the status says so."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from admitter.cache.views import timestamp
from admitter.client.errors import api_error
from admitter.client.store import Key
from tests.apiserver.server import ApiServer, clock

Json = dict[str, Any]

ACT_SECONDS = 0.1
STOP_SECONDS = 3.0
COUNT_SECONDS = 1.0
"""So long after pods have ended the status of their suspended Job says so, as the real one has it."""
JOB_LABEL = "batch.kubernetes.io/job-name"
GRANTED = "admitter.dev/granted-parallelism"
"""Only Jobs with this annotation follow their parallelism while they run: others are left as they began."""


class JobController:
    """Job controller, scheduler and kubelet of one server, on nodes without limits.

    Attributes:
        lasts: for how many seconds the pods of a Job run.
        spread: how many seconds after each other the pods of a Job end; 0: all at once.
    """

    def __init__(self, server: ApiServer, lasts: Callable[[Json], float] = lambda _: 30.0) -> None:
        """Act from now on."""
        self.lasts = lasts
        self.spread: Callable[[Json], float] = lambda _: 0.0
        self._server = server
        self._made = 0
        self._ending: set[str] = set()  # the paths of pods that take their time to end
        server.policies.append(_fixed_template)
        server.listen(self._changed)

    def _changed(self, plural: str, before: Json | None, after: Json | None) -> None:
        if plural != "jobs" or after is None:
            return
        told = ("suspend", "parallelism")
        if before is None or any(before["spec"].get(name) != after["spec"].get(name) for name in told):
            self._later(ACT_SECONDS, after, self._act)

    def _later(self, seconds: float, job: Json, act: Callable[[Json], None]) -> None:
        """Do something about a Job that is there then, and has not finished."""
        key, uid = _key(job), job["metadata"]["uid"]

        def do() -> None:
            now = self._server.objects["jobs"].get(key)
            if now is not None and now["metadata"]["uid"] == uid and not _is(now, "Complete"):
                act(now)

        asyncio.get_running_loop().call_later(seconds, do)

    def _act(self, job: Json) -> None:
        suspended = bool(job["spec"].get("suspend"))
        if suspended and not _is(job, "Suspended"):
            pods = self._pods(job)
            self._say(job, {"active": 0, "terminating": len(pods)}, Suspended="True")
            if pods:
                self._later(STOP_SECONDS, job, self._stopped)
        elif not suspended and (_is(job, "Suspended") or not (job.get("status") or {}).get("startTime")):
            count = min(job["spec"]["parallelism"], job["spec"]["completions"] - _succeeded(job))
            started = {"startTime": timestamp(clock()), "active": count}
            self._say(job, started, **({"Suspended": "False"} if _is(job, "Suspended") else {}))
            for _ in range(count):
                self._make_pod(job)
            names, spread = self._pods(job), self.spread(job)
            if spread or count < job["spec"]["completions"]:
                for place, name in enumerate(names):
                    self._later(self.lasts(job) + place * spread, job, partial(self._ended, path=name))
            else:
                self._later(self.lasts(job), job, lambda now: self._finished(now, names))

        elif not suspended and GRANTED in (job["metadata"].get("annotations") or {}):
            self._scale(job)

    def _scale(self, job: Json) -> None:
        """A Job that runs is to have more pods, or fewer: these take a while to end."""
        stay = [path for path in self._pods(job) if path not in self._ending]
        count = min(job["spec"]["parallelism"], job["spec"]["completions"] - _succeeded(job))
        for _ in range(count - len(stay)):
            self._make_pod(job)
        for path in set(self._pods(job)) - self._ending - set(stay):
            self._later(self.lasts(job), job, partial(self._ended, path=path))
        for path in stay[count:]:
            self._ending.add(path)
            self._later(STOP_SECONDS, job, partial(self._has_ended, path=path))
        if count != len(stay):
            self._say(job, {"active": count, "terminating": len(self._pods(job)) - count})

    def _has_ended(self, job: Json, path: str) -> None:
        self._ending.discard(path)
        if path in self._pods(job):
            self._server.remove(path)
            self._say(job, {"terminating": len(set(self._pods(job)) & self._ending)})

    def _stopped(self, job: Json) -> None:
        for path in self._pods(job):
            self._server.remove(path)
        self._later(COUNT_SECONDS, job, self._count)

    def _count(self, job: Json) -> None:
        if _is(job, "Suspended"):
            self._say(job, {"terminating": len(self._pods(job))})

    def _ended(self, job: Json, path: str) -> None:
        """A pod is done with, unless its Job was suspended meanwhile; another one may take its place."""
        if _is(job, "Suspended") or job["spec"].get("suspend") or path not in self._pods(job):
            return
        self._server.write(f"{path}/status", {"status": {"phase": "Succeeded"}})
        live, succeeded = self._pods(job), _succeeded(job) + 1
        left = job["spec"]["completions"] - succeeded
        if len(live) < min(job["spec"]["parallelism"], left):
            self._make_pod(job)
            (new,) = set(self._pods(job)) - set(live)
            self._later(self.lasts(job), job, partial(self._ended, path=new))
        counts = {"active": len(self._pods(job)), "succeeded": succeeded}
        self._say(job, counts, **({} if left else {"Complete": "True"}))

    def _finished(self, job: Json, pods: list[str]) -> None:
        """The pods of one start are done with, if it was not suspended meanwhile."""
        if _is(job, "Suspended") or job["spec"].get("suspend") or self._pods(job) != pods:
            return
        for path in pods:
            self._server.write(f"{path}/status", {"status": {"phase": "Succeeded"}})
        self._say(job, {"active": 0, "succeeded": len(pods)}, Complete="True")

    def _make_pod(self, job: Json) -> None:
        namespace, name = _key(job)
        self._made += 1
        template = job["spec"]["template"]
        marks = template.get("metadata") or {}
        owner = {"kind": "Job", "name": name, "uid": job["metadata"]["uid"], "controller": True}
        labels = {**(marks.get("labels") or {}), JOB_LABEL: name}
        annotations = marks.get("annotations") or {}
        metadata = {"name": f"{name}-{self._made}", "labels": labels, "annotations": annotations}
        body = {"metadata": metadata | {"ownerReferences": [owner]}, "spec": template["spec"]}
        path = f"/api/v1/namespaces/{namespace}/pods"
        made = self._server.make(path, body)["metadata"]["name"]
        self._server.write(f"{path}/{made}/status", {"status": {"phase": "Running"}})

    def _pods(self, job: Json) -> list[str]:
        """The paths of a Job's pods that have not ended."""
        uid, (namespace, _) = job["metadata"]["uid"], _key(job)
        return [
            f"/api/v1/namespaces/{namespace}/pods/{name}"
            for (_, name), pod in sorted(self._server.objects["pods"].items())
            if is_owned(pod, uid) and is_live(pod)
        ]

    def _say(self, job: Json, counts: Json, **conditions: str) -> None:
        before = (job.get("status") or {}).get("conditions") or []
        kept = [condition for condition in before if condition["type"] not in conditions]
        now = [{"type": kind, "status": status} for kind, status in conditions.items()]
        path = "/apis/batch/v1/namespaces/{}/jobs/{}/status".format(*_key(job))
        self._server.write(path, {"status": counts | {"conditions": kept + now}})


def is_owned(raw: Json, uid: str) -> bool:
    """Whether the first owner of an object has a UID."""
    owners = raw["metadata"].get("ownerReferences") or []
    return bool(owners) and owners[0]["uid"] == uid


def is_live(pod: Json) -> bool:
    """Whether a pod has not ended."""
    return (pod.get("status") or {}).get("phase") not in {"Succeeded", "Failed"}


def _fixed_template(plural: str, before: Json | None, after: Json | None) -> None:
    """Only while a Job is suspended and was not started may its template change."""
    if plural != "jobs" or before is None or after is None:
        return
    started = (before.get("status") or {}).get("startTime") or not before["spec"].get("suspend")
    if started and before["spec"]["template"] != after["spec"]["template"]:
        raise api_error(422, {"reason": "Invalid", "message": "spec.template: field is immutable"})


def _is(job: Json, condition: str) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)


def _succeeded(job: Json) -> int:
    return int((job.get("status") or {}).get("succeeded") or 0)


def _key(job: Json) -> Key:
    return (job["metadata"]["namespace"], job["metadata"]["name"])

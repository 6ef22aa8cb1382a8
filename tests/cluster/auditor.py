"""An observer that knows nothing of the controller: it watches the API and adds up what is admitted."""

import json
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from admitter.sandbox.cluster import Cluster
from tests.cluster.waiting import eventually
from tests.quantities import thousandths

JOIN_SECONDS = 0.2
WORKLOAD = "admitter.dev/workload"
"""The label of pods that an admission puts into their templates."""

Use = tuple[str, str]
"""Flavor and resource."""


def whole(quantity: str) -> float:
    """A quantity of the tests, such as a number, thousandths, or GiB."""
    return thousandths(quantity) / 1000


def extra_pods(status: Mapping[str, Any]) -> dict[str, int]:
    """How many pods of each pod set may live beyond an admission, by the status of its Workload."""
    counts = {each["name"]: each["count"] for each in status["admission"]["podSets"]}
    resize = status.get("resize", {})
    if "podSets" not in resize:  # a Job, with one pod set
        return dict.fromkeys(counts, max(0, resize.get("granted", 0) - sum(counts.values())))
    return {each["name"]: max(0, each["granted"] - counts[each["name"]]) for each in resize["podSets"]}


class Books:
    """What Workloads hold, added up from what the API says of each, and compared with limits at every change.

    Attributes:
        total: what is held now of each flavor and resource.
        highest: the largest use seen of each flavor and resource.
        excesses: every moment at which a limit was passed, in words.
        admissions: how often each Workload was admitted, by namespace and name.
        preempted: Workloads that were evicted in favor of others, by namespace and name.
        finished: Workloads that have finished, by namespace and name.
    """

    def __init__(self, limits: Mapping[Use, float]) -> None:
        self.total: Counter[Use] = Counter()
        self.highest: Counter[Use] = Counter()
        self.excesses: list[str] = []
        self.admissions: Counter[str] = Counter()
        self.preempted: set[str] = set()
        self.finished: set[str] = set()
        self._limits = limits
        self._holding: dict[str, Counter[Use]] = {}

    def take(self, kind: str, workload: dict[str, Any]) -> None:
        """Enter an event of a watch: `ADDED`, `MODIFIED` or `DELETED`, and the Workload."""
        metadata, status = workload["metadata"], workload.get("status", {})
        name = f"{metadata['namespace']}/{metadata['name']}"
        holding = {c["type"] for c in status.get("conditions", ()) if c["status"] == "True"}
        if "Preempted" in holding:
            self.preempted.add(name)
        if "Finished" in holding:
            self.finished.add(name)
        admission = status.get("admission")
        before = self._holding.pop(name, None)
        if before is not None:
            self.total.subtract(before)
        if kind == "DELETED" or "Finished" in holding or not admission:
            return
        if before is None:
            self.admissions[name] += 1
        use: Counter[Use] = Counter()
        held = {each["name"]: each["count"] for each in status.get("held", ())}
        extra = extra_pods(status)
        for pod_set in admission["podSets"]:
            count = max(1, pod_set["count"])
            pods = held.get(pod_set["name"], count) + extra.get(pod_set["name"], 0)
            for resource, quantity in pod_set["usage"].items():
                use[pod_set["flavors"][resource], resource] += whole(quantity) / count * pods
        self._holding[name] = use
        self.total.update(use)
        self._check(name, use)

    def _check(self, cause: str, use: Counter[Use]) -> None:
        for key in use:
            amount = self.total[key]
            self.highest[key] = max(self.highest[key], amount)
            if amount > self._limits[key]:
                self.excesses.append(f"{amount} of {self._limits[key]} {key} after {cause}")


class Watching:
    """Follows collections until the end of a block, and then all that has happened in it is known."""

    _watches: "list[Watch]"

    def __enter__(self) -> Self:
        for watch in self._watches:
            watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            for watch in self._watches:
                watch.catch_up()
        for watch in self._watches:
            watch.stop()


class InOrder(Watching):
    """Follows the Workloads and pods of a namespace; tells their changes in the order of the store."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._seen: list[tuple[int, str, str, dict[str, Any]]] = []
        group, pods = "/apis/admitter.dev/v1alpha1", "/api/v1"
        self._watches = [
            Watch(cluster, f"{path}/namespaces/{namespace}/{plural}", self._taker(plural))
            for path, plural in ((group, "workloads"), (pods, "pods"))
        ]

    def _taker(self, plural: str) -> Callable[[str, dict[str, Any]], None]:
        def take(kind: str, seen: dict[str, Any]) -> None:
            self._seen.append((int(seen["metadata"]["resourceVersion"]), plural, kind, seen))

        return take

    def changes(self) -> list[tuple[int, str, str, dict[str, Any]]]:
        """Of each its version, the plural of its kind, what has happened, and the object."""
        return sorted(self._seen, key=lambda each: each[0])


class Auditor(Watching, Books):
    """Keeps the books of one namespace, and counts its pods, for as long as a block lasts.

    Attributes:
        most_pods: the largest number of pods that lived at a time.
        most_on: the same for each type of node that they ask for.
        started: how many pods each Workload has had in all, by namespace and name; pods of none are under "".
    """

    def __init__(self, cluster: Cluster, namespace: str, limits: Mapping[Use, float]) -> None:
        super().__init__(limits)
        self.most_pods = 0
        self.most_on: Counter[str] = Counter()
        self.started: Counter[str] = Counter()
        self._pods: dict[str, str] = {}
        self._known: set[str] = set()
        self._watches = [
            Watch(cluster, f"/apis/admitter.dev/v1alpha1/namespaces/{namespace}/workloads", self.take),
            Watch(cluster, f"/api/v1/namespaces/{namespace}/pods", self._pod),
        ]

    def _pod(self, kind: str, pod: dict[str, Any]) -> None:
        metadata = pod["metadata"]
        uid, workload = metadata["uid"], metadata.get("labels", {}).get(WORKLOAD)
        if uid not in self._known:
            self._known.add(uid)
            self.started[f"{metadata['namespace']}/{workload}" if workload else ""] += 1
        if kind == "DELETED" or pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
            self._pods.pop(uid, None)
        else:
            self._pods[uid] = pod["spec"].get("nodeSelector", {}).get("instance-type", "")
        self.most_pods = max(self.most_pods, len(self._pods))
        self.most_on |= Counter(self._pods.values())


class Watch:
    """All events of a collection from its start on; where the API server ends a watch, another goes on."""

    def __init__(self, cluster: Cluster, path: str, take: Callable[[str, dict[str, Any]], None]) -> None:
        self._command = [str(cluster.kubectl), f"--kubeconfig={cluster.kubeconfig}"]
        self._command += [f"--context={cluster.context}"] if cluster.context else []
        self._path = path
        self._take = take
        self._version = ""
        self._start = 0
        self._seen: dict[str, int] = {}
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False
        self._errors: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self._follow)

    def start(self) -> None:
        """Begin with what happens from now on."""
        listed = subprocess.run(
            [*self._command, "get", "--raw", f"{self._path}?limit=1"], check=True, capture_output=True
        )
        self._version = json.loads(listed.stdout)["metadata"]["resourceVersion"]
        self._start = int(self._version)
        self._open()
        self._thread.start()

    def catch_up(self) -> None:
        """Wait until it has told all that has happened up to now: it comes later than an answer."""
        eventually(self._is_up_to_date, what=f"all events of {self._path}")

    def _is_up_to_date(self) -> bool:
        seen = dict(self._seen)
        listed = subprocess.run([*self._command, "get", "--raw", self._path], check=True, capture_output=True)
        found = [each["metadata"] for each in json.loads(listed.stdout)["items"]]
        there = {each["uid"]: int(each["resourceVersion"]) for each in found}
        late = [uid for uid, version in there.items() if seen.get(uid, self._start) < version]
        return bool(self._errors) or (not late and seen.keys() <= there.keys())

    def stop(self) -> None:
        """End it.

        Raises:
            AssertionError: it has missed something.
        """
        self._stopped = True
        while self._thread.is_alive():
            assert self._process is not None
            self._process.terminate()
            self._thread.join(JOIN_SECONDS)  # it may just have begun another one
        assert not self._errors, self._errors

    def _open(self) -> "subprocess.Popen[str]":
        query = f"watch=true&allowWatchBookmarks=true&resourceVersion={self._version}"
        command = [*self._command, "get", "--raw", f"{self._path}?{query}"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        return self._process

    def _follow(self) -> None:
        process = self._process
        while process is not None:
            assert process.stdout is not None
            with process, process.stdout:
                for line in process.stdout:
                    if not line.endswith("\n"):
                        break  # kubectl was ended as it wrote it
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        self._errors.append(event["object"])
                        return
                    self._version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._take(event["type"], event["object"])
                        self._note(event["type"], event["object"]["metadata"])
            process = None if self._stopped else self._open()

    def _note(self, kind: str, metadata: dict[str, Any]) -> None:
        if kind == "DELETED":
            self._seen.pop(metadata["uid"], None)
        else:
            self._seen[metadata["uid"]] = int(metadata["resourceVersion"])

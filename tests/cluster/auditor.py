"""An observer that knows nothing of the controller: it watches the API and adds up what is admitted."""

import json
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from admitter.sandbox.cluster import Cluster

Use = tuple[str, str]
"""Flavor and resource."""


def whole(quantity: str) -> float:
    """A quantity of the tests: whole numbers, thousandths, or GiB."""
    if quantity.endswith("m"):
        return int(quantity[:-1]) / 1000
    return int(quantity[:-2]) * 2**30 if quantity.endswith("Gi") else int(quantity)


class Auditor:
    """Checks at every event that the admitted use of a namespace's Workloads is within the limits.

    Attributes:
        highest: the largest use seen of each flavor and resource.
        excesses: every moment at which a limit was passed, in words.
        admissions: how often each Workload was admitted.
        most_pods: the largest number of pods that lived at a time.
    """

    def __init__(self, cluster: Cluster, namespace: str, limits: Mapping[Use, float]) -> None:
        self.highest: Counter[Use] = Counter()
        self.excesses: list[str] = []
        self.admissions: Counter[str] = Counter()
        self.most_pods = 0
        self._limits = limits
        self._holding: dict[str, Counter[Use]] = {}
        self._pods: set[str] = set()
        base = [str(cluster.kubectl), f"--kubeconfig={cluster.kubeconfig}"]
        base += [f"--context={cluster.context}"] if cluster.context else []
        options = [f"--namespace={namespace}", "--watch", "--output-watch-events", "--output=json"]
        self._watches = [
            subprocess.Popen([*base, "get", kind, *options], stdout=subprocess.PIPE, text=True)
            for kind in ("workloads.admitter.dev", "pods")
        ]
        self._threads = [
            threading.Thread(target=self._follow, args=(watch, take))
            for watch, take in zip(self._watches, (self._workload, self._pod), strict=True)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for watch, thread in zip(self._watches, self._threads, strict=True):
            watch.terminate()
            thread.join()
            watch.wait()

    def _follow(self, watch: "subprocess.Popen[str]", take: Callable[[str, dict[str, Any]], None]) -> None:
        assert watch.stdout is not None
        with watch.stdout:
            for line in watch.stdout:
                event = json.loads(line)
                take(event["type"], event["object"])

    def _workload(self, kind: str, workload: dict[str, Any]) -> None:
        name, status = workload["metadata"]["name"], workload.get("status", {})
        finished = any(
            c["type"] == "Finished" and c["status"] == "True" for c in status.get("conditions", ())
        )
        admission = status.get("admission")
        if kind == "DELETED" or finished or not admission:
            self._holding.pop(name, None)
            return
        if name not in self._holding:
            self.admissions[name] += 1
        use: Counter[Use] = Counter()
        for pod_set in admission["podSets"]:
            for resource, quantity in pod_set["usage"].items():
                use[pod_set["flavors"][resource], resource] += whole(quantity)  # type: ignore[assignment]  # halves count
        self._holding[name] = use
        self._check(name)

    def _check(self, cause: str) -> None:
        total: Counter[Use] = Counter()
        for use in self._holding.values():
            total.update(use)
        for key, amount in total.items():
            self.highest[key] = max(self.highest[key], amount)
            if amount > self._limits[key]:
                self.excesses.append(f"{amount} of {self._limits[key]} {key} after {cause}")

    def _pod(self, kind: str, pod: dict[str, Any]) -> None:
        uid = pod["metadata"]["uid"]
        if kind == "DELETED" or pod.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
            self._pods.discard(uid)
        else:
            self._pods.add(uid)
        self.most_pods = max(self.most_pods, len(self._pods))

"""Very many Jobs that wait, put into the API server's storage as copies of one.

The one is made as ever: by its user, the API server and the controller. What they have stored of it, its Job
and its Workload with the reason that it waits, is copied under other names and UIDs: the same bytes as if
each had been created by a call, there in seconds instead of most of an hour. All names are of one length, so
that they can be replaced in the binary form of Jobs too.
"""

import http.client
import json
import ssl
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass
from itertools import islice
from typing import Any, Final
from urllib.parse import urlsplit

import psutil

from admitter.cache.views import parse_job
from admitter.sandbox.control_plane import ControlPlane
from admitter.sandbox.state import SandboxState

BATCH: Final = 100
TIMEOUT_SECONDS: Final = 30
ADDRESS_OPTION: Final = "--etcd-servers="

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Identity:
    """All that tells a waiting Job and its Workload from others.

    The Workload's name comes first, since the Job's is a part of it.
    """

    workload: str
    workload_uid: str
    job: str
    job_uid: str
    namespace: str

    @classmethod
    def of(cls, job: Json, workload_uid: str) -> "Identity":
        """That of a Job, as the API tells it, and its Workload."""
        view = parse_job(job)
        return cls(view.workload, workload_uid, view.name, view.uid, view.namespace)

    @property
    def keys(self) -> tuple[str, str]:
        """Where the API server stores the Job and the Workload."""
        return (
            f"/registry/jobs/{self.namespace}/{self.job}",
            f"/registry/admitter.dev/workloads/{self.namespace}/{self.workload}",
        )

    def in_place_of(self, other: "Identity", stored: bytes) -> bytes:
        """What is stored of another one, as this one."""
        for before, after in zip(astuple(other), astuple(self), strict=True):
            assert len(before) == len(after), "the binary form tells the length of each name beside it"
            stored = stored.replace(before.encode(), after.encode())
        return stored


class Storage:
    """The etcd of a control plane, without the API server."""

    def __init__(self, cluster: ControlPlane) -> None:
        state = SandboxState.load(cluster.folder)
        assert state is not None
        command = psutil.Process(state.components["kube-apiserver"].pid).cmdline()
        address = next(each for each in command if each.startswith(ADDRESS_OPTION))
        host = urlsplit(address.removeprefix(ADDRESS_OPTION)).netloc
        pki = cluster.folder / "pki"
        context = ssl.create_default_context(cafile=pki / "ca.crt")
        context.load_cert_chain(pki / "etcd-client.crt", pki / "etcd-client.key")
        self._connection = http.client.HTTPSConnection(host, timeout=TIMEOUT_SECONDS, context=context)

    def read(self, key: str) -> bytes:
        """What is stored under a key."""
        (found,) = self._call("range", {"key": _text(key.encode())})["kvs"]
        return b64decode(found["value"])

    def write(self, values: Iterable[tuple[str, bytes]]) -> None:
        """Store values under keys, those of a batch in one step."""
        rest = iter(values)
        while batch := list(islice(rest, BATCH)):
            puts = [{"key": _text(key.encode()), "value": _text(value)} for key, value in batch]
            self._call("txn", {"success": [{"request_put": put} for put in puts]})

    def _call(self, what: str, body: Json) -> Json:
        self._connection.request("POST", f"/v3/kv/{what}", json.dumps(body))
        response = self._connection.getresponse()
        text = response.read()
        if response.status != 200:
            raise OSError(f"etcd answered {response.status}: {text.decode(errors='replace')}")
        found: Json = json.loads(text)
        return found


def copy(storage: Storage, job: Json, workload_uid: str, places: Iterable[tuple[str, int]]) -> None:
    """Copy a Job that waits, and its Workload.

    Args:
        storage: where.
        job: the Job, as the API tells it; its name ends in six digits.
        workload_uid: of its Workload.
        places: the namespace of each copy, and its number, which its name ends in.
    """
    original = Identity.of(job, workload_uid)
    stored = [storage.read(key) for key in original.keys]

    def copies() -> Iterator[tuple[str, bytes]]:
        for namespace, number in places:
            names = {
                "namespace": namespace,
                "name": f"{original.job[:-6]}{number:06}",
                "uid": _uid(number, 1),
            }
            identity = Identity.of(job | {"metadata": job["metadata"] | names}, _uid(number, 2))
            for key, value in zip(identity.keys, stored, strict=True):
                yield key, identity.in_place_of(original, value)

    storage.write(copies())


def _uid(number: int, kind: int) -> str:
    """A UID; in order of number, like those that a server makes it has no meaning."""
    return f"{number:08x}-{kind:04x}-4000-8000-000000000000"


def _text(value: bytes) -> str:
    return b64encode(value).decode()

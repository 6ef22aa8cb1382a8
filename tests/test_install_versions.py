"""In which version policies are installed: not all releases can be run here, so an API server is made up."""

from typing import cast

import pytest

from admitter.client.errors import ApiError, InvalidError, NotFoundError
from admitter.client.policies import GROUP, MUTATING
from admitter.client.transport import Json, Transport
from admitter.install.apply import LEFT_OUT, install, install_kinds, uninstall
from admitter.install.kinds import chosen
from admitter.names import JOB_KIND_LABEL

READY: Json = {"conditions": [{"type": "Established", "status": "True"}], "observedGeneration": 1}


class Server:
    """Has the policies that change objects in some versions, and takes all that it knows."""

    def __init__(self, *versions: str) -> None:
        self.versions = versions
        self.there: dict[str, Json] = {}
        self.tried = 0

    async def get(self, path: str, query: object = None) -> Json:
        if query is not None:
            listed = [each for place, each in self.there.items() if place.rpartition("/")[0] == path]
            return {"items": [each for each in listed if JOB_KIND_LABEL in each["metadata"]["labels"]]}
        version = path.removeprefix(f"/apis/{GROUP}/")
        if version in {"v1", *self.versions}:
            kinds = ["ValidatingAdmissionPolicy"] if version == "v1" else []
            return {"resources": [{"kind": kind} for kind in [*kinds, *MUTATING] if self._has(kind, version)]}
        if path not in self.there:
            raise NotFoundError(404, "NotFound", path)
        return self.there[path]

    async def apply(self, path: str, manifest: Json) -> Json:
        assert self._has(manifest["kind"], manifest["apiVersion"].rpartition("/")[2])
        self.there[path] = manifest | {"metadata": {**manifest["metadata"], "generation": 1}, "status": READY}
        return self.there[path]

    async def create(self, _path: str, tried: Json, query: object) -> Json:
        """Refuse it: at first because the definition is new, then because a policy acts."""
        assert query == {"dryRun": "All"}
        self.tried += 1
        if self.tried == 1:
            raise ApiError(503, "ServiceUnavailable", "Resource kind not found")
        raise InvalidError(422, "Invalid", f"policy '{tried['metadata']['name']}' denied request")

    async def delete(self, path: str, _body: object) -> None:
        if self.there.pop(path, None) is None:
            raise NotFoundError(404, "NotFound", path)

    def _has(self, kind: str, version: str) -> bool:
        return kind not in MUTATING or version in self.versions


@pytest.mark.parametrize(
    ("versions", "used"),
    [
        pytest.param(("v1",), "v1", id="1.36"),
        pytest.param(("v1", "v1beta1"), "v1", id="1.36 with the beta turned on"),
        pytest.param(("v1beta1",), "v1beta1", id="1.35 with the beta turned on"),
        pytest.param((), None, id="1.35"),
        pytest.param(("v1alpha1",), None, id="1.33 with the alpha turned on"),
    ],
)
async def test_policies_are_installed_in_the_best_version_and_all_is_removed(
    versions: tuple[str, ...], used: str | None
) -> None:
    server = Server(*versions)
    outcomes = await install(cast("Transport", server), deployment=True)
    outcomes += await install_kinds(cast("Transport", server), chosen("jobset"))
    taken = {path.split("/")[3] for path in server.there if path.split("/")[4] in MUTATING.values()}
    assert taken == ({used} if used else set())
    assert {each.kind for each in outcomes if each.result == LEFT_OUT} == (set() if used else set(MUTATING))
    assert server.tried == (2 if used else 0), "it waits for the policy"
    await uninstall(cast("Transport", server))
    assert {each["kind"] for each in server.there.values()} == {"JobKind"}  # which go with their definition

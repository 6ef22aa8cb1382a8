"""What a deletion needs that the API server forgets about: a race in itself, so the server is made up."""

from typing import Any, cast

from admitter.client.errors import NotFoundError
from admitter.client.transport import Transport
from admitter.install.apply import uninstall

FORGOTTEN = "cohorts.admitter.dev"


class Forgetful:
    """Has one definition, of which the deletion has failed and goes on only when the definition changes."""

    def __init__(self) -> None:
        self.there = True
        self.changes = 0

    async def get(self, path: str, query: object = None) -> dict[str, Any]:
        if query is not None:
            return {"items": []}
        if not (self.there and path.endswith(FORGOTTEN)):
            raise NotFoundError(404, "NotFound", "gone")
        failed = {"type": "Terminating", "status": "True", "reason": "InstanceDeletionFailed"}
        return {"metadata": {"name": FORGOTTEN, "resourceVersion": "7"}, "status": {"conditions": [failed]}}

    async def delete(self, path: str, _body: object) -> None:
        if not path.endswith(FORGOTTEN):
            raise NotFoundError(404, "NotFound", "gone")

    async def patch(self, path: str, _body: object) -> None:
        assert path.endswith(FORGOTTEN)
        self.changes += 1
        self.there = False


async def test_a_definition_with_a_forgotten_deletion_is_changed_and_goes() -> None:
    server = Forgetful()
    await uninstall(cast("Transport", server))
    assert server.changes == 1
    assert not server.there

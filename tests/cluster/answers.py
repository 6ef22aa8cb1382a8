"""What the API server says, and what it says when it refuses."""

import orjson
import urllib3

from tests.cluster.objects import Json


class RefusedError(Exception):
    """The API server refuses a request.

    Attributes:
        reason: such as `NotFound`.
    """

    def __init__(self, status: Json) -> None:
        self.reason = status.get("reason", "")
        message, what = status.get("message", ""), status.get("details", {})
        _, is_invalid, why = message.partition(" is invalid: ")
        if self.reason == "Invalid" and is_invalid:
            super().__init__(f'The {what.get("kind")} "{what.get("name", "")}"{is_invalid}{why}')
        else:
            super().__init__(f"Error from server ({self.reason}): {message}")

    @classmethod
    def of(cls, refusals: "list[RefusedError]") -> "RefusedError":
        """What is said of several objects."""
        made = refusals[0]
        made.args = ("\n".join(map(str, refusals)),)
        return made


def said(answer: urllib3.BaseHTTPResponse) -> Json:
    """What is in an answer; where no kind of an API group is left, that is a text."""
    try:
        content: Json = orjson.loads(answer.data)
    except orjson.JSONDecodeError:
        return {"message": answer.data.decode(errors="replace").strip(), "reason": answer.reason or ""}
    return content

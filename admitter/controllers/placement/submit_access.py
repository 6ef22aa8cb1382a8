"""Whether the maker of a Job may submit to the queue that a rule has found: the API server is asked."""

from typing import Final

from admitter.client.transport import Transport
from admitter.names import GROUP, SUBMIT_VERB
from admitter.policy.status import Clock
from admitter.quotas.placement import Maker

REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
REMEMBERED_SECONDS: Final = 10.0
MOST_REMEMBERED: Final = 10_000

_Question = tuple[Maker, str, str]


class SubmitAccess:
    """Asks, and remembers the answer for a moment: many Jobs of one user come at once."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._answers: dict[_Question, tuple[bool, float]] = {}

    async def may_submit(self, maker: Maker, namespace: str, queue: str) -> bool:
        """Whether a user has the verb `submit` on a LocalQueue.

        Raises:
            ClusterError: the API server does not answer.
        """
        question, now = (maker, namespace, queue), self._clock().timestamp()
        allowed, until = self._answers.get(question, (False, now))
        if until > now:
            return allowed
        if len(self._answers) >= MOST_REMEMBERED:
            self._answers.clear()
        attributes = {
            "verb": SUBMIT_VERB,
            "group": GROUP,
            "resource": "localqueues",
            "namespace": namespace,
            "name": queue,
        }
        spec = {"user": maker.user, "groups": list(maker.groups), "resourceAttributes": attributes}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        answer = await self._transport.create(REVIEWS, review)
        allowed = bool(answer["status"].get("allowed"))
        self._answers[question] = (allowed, now + REMEMBERED_SECONDS)
        return allowed

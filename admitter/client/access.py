"""Which user a token belongs to, and what that user may see: TokenReview and SubjectAccessReview.

The page and the metrics ask. Answers are remembered for a short while, so that a page that is looked at asks
only now and then; a right that is taken away is gone after that time.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Final, Generic, TypeVar

from admitter.client.transport import Transport
from admitter.names import GROUP, SUBMIT_VERB

REMEMBERED_SECONDS: Final = 30.0
PROVEN_SECONDS: Final = 300.0
"""For so long a token that was good is asked about again at once, however many others are tried."""
MOST_REMEMBERED: Final = 10_000
LONGEST_TOKEN: Final = 64 * 1024
MOST_ADDRESSES: Final = 10_000
"""Addresses that are told apart; the one that was heard of longest ago is forgotten, and has all again."""


@dataclass(frozen=True, slots=True)
class Rate:
    """How often: so many at once after a pause, and so many each second after that."""

    at_once: float
    a_second: float


OF_AN_ADDRESS: Final = Rate(at_once=20, a_second=2)
OF_ALL: Final = Rate(at_once=100, a_second=20)
"""Tokens of which nothing is known that the API server is asked about."""
_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class User:
    """A user that the API server knows, and whatever else the authenticator says of the user."""

    name: str
    groups: tuple[str, ...]
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Right:
    """What may be done with objects, as a SubjectAccessReview asks for it."""

    verb: str
    resource: str  # the plural of the kind
    namespace: str = ""  # empty: all namespaces, or a kind of the whole cluster
    name: str = ""  # empty: all of them
    group: str = GROUP


class TooManyTokensError(Exception):
    """So many unknown tokens were tried lately that the API server is not asked about another one."""


class _Memory(Generic[T]):
    """Answers that hold for a while."""

    def __init__(self, now: Callable[[], float], seconds: float) -> None:
        self._now = now
        self._seconds = seconds
        self._known: OrderedDict[object, tuple[float, T]] = OrderedDict()

    def get(self, question: object) -> T | None:
        """The answer, if it is not too old."""
        known = self._known.get(question)
        return known[1] if known is not None and not self._is_old(question) else None

    def put(self, question: object, answer: T) -> T:
        """Remember an answer, and forget those that are too old: tokens and users change all the time."""
        self._known.pop(question, None)
        self._known[question] = (self._now(), answer)
        while len(self._known) > MOST_REMEMBERED or self._is_old(next(iter(self._known))):
            self._known.popitem(last=False)
        return answer

    def _is_old(self, question: object) -> bool:
        return self._now() - self._known[question][0] >= self._seconds


class Rates:
    """What each of many sources has left, and all of them together.

    `now` tells the time, in seconds that only grow.
    """

    def __init__(self, each: Rate, together: Rate, now: Callable[[], float]) -> None:
        self._each = each
        self._together = together
        self._now = now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._all = (now(), together.at_once)

    def allows(self, source: str) -> bool:
        """Whether a source may now; then it has done so."""
        now = self._now()
        mine = self._filled(self._left.pop(source, (now, self._each.at_once)), self._each, now)
        ours = self._filled(self._all, self._together, now)
        allowed = mine >= 1 and ours >= 1
        self._left[source] = (now, mine - allowed)
        self._all = (now, ours - allowed)
        if len(self._left) > MOST_ADDRESSES:
            self._left.popitem(last=False)
        return allowed

    @staticmethod
    def _filled(known: tuple[float, float], rate: Rate, now: float) -> float:
        since, left = known
        return min(rate.at_once, left + (now - since) * rate.a_second)


class Access:
    """Asks the API server, as a user that may create both kinds of reviews.

    A question raises ClusterError if the API server does not answer.

    `now` tells the time, in seconds that only grow; answers are remembered for some of them.
    """

    def __init__(
        self, transport: Transport, now: Callable[[], float], seconds: float = REMEMBERED_SECONDS
    ) -> None:
        self._transport = transport
        self._users: _Memory[tuple[User | None]] = _Memory(now, seconds)
        self._rights: _Memory[bool] = _Memory(now, seconds)
        self._proven: _Memory[bool] = _Memory(now, PROVEN_SECONDS)
        self._rates = Rates(OF_AN_ADDRESS, OF_ALL, now)

    async def user(self, token: str, address: str) -> User | None:
        """The user of a token, as it was sent from an address; None: the API server knows none.

        Raises:
            TooManyTokensError: it is not asked, since too many unknown tokens were tried lately.
        """
        digest = sha256(token.encode()).digest()  # tokens are not kept where they are looked for
        known = self._users.get(digest)
        if known is None:
            if not self._proven.get(digest) and not self._rates.allows(address):
                raise TooManyTokensError
            body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
            review = await self._transport.create(_REVIEWS, body)
            known = self._users.put(digest, (_user(review.get("status") or {}),))
            if known[0] is not None:
                self._proven.put(digest, True)  # it is proven
        return known[0]

    async def may_list(self, user: User, plural: str, namespace: str = "") -> bool:
        """Whether a user may list a kind of Admitter, in one namespace or, without one, in all."""
        attributes = {"group": GROUP, "resource": plural, "verb": "list", "namespace": namespace}
        return await self._may(user, {"resourceAttributes": attributes})

    async def may(self, user: User, right: Right) -> bool:
        """Whether a user has a right on objects of any kind."""
        return await self._may(user, {"resourceAttributes": asdict(right)})

    async def may_submit(self, user: User, namespace: str, queue: str) -> bool:
        """Whether a user has the verb `submit` on a LocalQueue."""
        attributes = {"group": GROUP, "resource": "localqueues", "verb": SUBMIT_VERB}
        where = {"namespace": namespace, "name": queue}
        return await self._may(user, {"resourceAttributes": {**attributes, **where}})

    async def may_get(self, user: User, path: str) -> bool:
        """Whether a user may read a path that is no object's, such as `/metrics`."""
        return await self._may(user, {"nonResourceAttributes": {"path": path, "verb": "get"}})

    async def _may(self, user: User, attributes: dict[str, dict[str, str]]) -> bool:
        question = (user, *((kind, *values.items()) for kind, values in attributes.items()))
        known = self._rights.get(question)
        if known is not None:
            return known
        spec = {
            "user": user.name,
            "uid": user.uid,
            "groups": list(user.groups),
            "extra": {name: list(values) for name, values in user.extra},
            **attributes,
        }
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        review = await self._transport.create(ACCESS_REVIEWS, body)
        return self._rights.put(question, bool((review.get("status") or {}).get("allowed")))


def bearer(header: str) -> str:
    """The token in a header `Authorization`; empty if there is none, or what it has can be no token."""
    scheme, _, token = header.partition(" ")
    fits = scheme.lower() == "bearer" and token.isascii() and len(token) <= LONGEST_TOKEN
    return token if fits else ""


def _user(status: dict[str, Any]) -> User | None:
    if not status.get("authenticated"):
        return None
    said = status.get("user") or {}
    extra = tuple((name, tuple(values)) for name, values in sorted((said.get("extra") or {}).items()))
    return User(said.get("username", ""), tuple(said.get("groups") or ()), said.get("uid", ""), extra)

"""The namespaces of a user, found out by few questions."""

from admitter.client.access import User
from admitter.web.namespace_search import (
    MOST_PARTIES,
    OF_A_PARTY,
    REFUSED_SECONDS,
    NamespaceSearch,
    likeliest,
)

ANN = User("ann", ())


class Server:
    """Answers questions about rights, and counts them."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = set(allowed)
        self.asked: list[str] = []

    async def may_list(self, name: str) -> bool:
        self.asked.append(name)
        return name in self.allowed


def names(count: int) -> list[str]:
    return [f"ns-{number:04}" for number in range(count)]


async def test_a_user_that_may_list_all_is_asked_about_once() -> None:
    server = Server("")
    found = await NamespaceSearch(lambda: 0.0).among(ANN, server.may_list, names(1000))
    assert (found.everything, found.complete, server.asked) == (True, True, [""])
    assert found.sees("whatever")


async def test_thousands_of_namespaces_are_asked_about_a_few_at_a_time() -> None:
    now, server = 0.0, Server("ns-0950", "ns-0001")
    search = NamespaceSearch(lambda: now)
    first = await search.among(ANN, server.may_list, names(1000))
    assert first.names == {"ns-0001"}
    assert not first.complete
    assert len(server.asked) == OF_A_PARTY.at_once + 1
    rounds = 0
    found = first
    while not found.complete:
        rounds += 1
        now += 20.0
        found = await search.among(ANN, server.may_list, names(1000))
        assert found.names >= {"ns-0001"}, "what was found is there in every answer"
    assert found.names == {"ns-0001", "ns-0950"}
    assert rounds <= 10
    assert max(server.asked.count(name) for name in names(1000) if name not in server.allowed) == 1


async def test_a_search_among_more_namespaces_than_are_asked_about_until_refusals_are_old_ends() -> None:
    now, server = 0.0, Server("ns-4999")
    search = NamespaceSearch(lambda: now)
    assert OF_A_PARTY.at_once + OF_A_PARTY.a_second * REFUSED_SECONDS < 5000
    while not (found := await search.among(ANN, server.may_list, names(5000))).complete:
        now += 20.0
        assert now < 2 * 5000 / OF_A_PARTY.a_second
    assert found.names == {"ns-4999"}
    server.allowed.add("ns-0003")
    while not (found := await search.among(ANN, server.may_list, names(5000))).sees("ns-0003"):
        assert found.complete, "a namespace that is due again was asked about"
        now += 20.0
        assert now < 4 * 5000 / OF_A_PARTY.a_second
    assert found.names == {"ns-0003", "ns-4999"}


async def test_a_right_that_is_taken_away_or_given_is_seen() -> None:
    now, server = 0.0, Server("ns-0001")
    search = NamespaceSearch(lambda: now)
    assert (await search.among(ANN, server.may_list, names(3))).names == {"ns-0001"}
    server.allowed = {"ns-0002"}
    assert (await search.among(ANN, server.may_list, names(3))).names == frozenset()
    now += REFUSED_SECONDS
    assert (await search.among(ANN, server.may_list, names(3))).names == {"ns-0002"}


async def test_what_one_user_was_told_is_told_to_no_other() -> None:
    search = NamespaceSearch(lambda: 0.0)
    assert (await search.among(ANN, Server("ns-0001").may_list, names(3))).names == {"ns-0001"}
    assert (await search.among(User("bob", ()), Server().may_list, names(3))).names == frozenset()


def test_the_likeliest_namespace_is_asked_about_first() -> None:
    user = User("system:serviceaccount:ns-0002:runner", ())
    assert likeliest(user, names(3)) == ["ns-0002", "ns-0000", "ns-0001"]
    assert likeliest(User("x", ("ns-0001",)), names(3))[0] == "ns-0001"


def account(namespace: str, number: int) -> User:
    return User(f"system:serviceaccount:{namespace}:runner-{number}", ())


async def test_the_accounts_of_a_namespace_are_one_user_to_the_rate() -> None:
    search, server = NamespaceSearch(lambda: 0.0), Server("ns-0001")
    for number in range(20):
        await search.among(account("team-a", number), Server().may_list, names(1000))
    found = await search.among(ANN, server.may_list, names(3))
    assert found.names == {"ns-0001"}
    assert found.complete


async def test_many_accounts_make_no_other_user_forgotten() -> None:
    search, server = NamespaceSearch(lambda: 0.0), Server("ns-0001")
    await search.among(ANN, server.may_list, names(3))
    for number in range(2 * MOST_PARTIES):
        await search.among(account("team-a", number), Server().may_list, ())
    server.asked.clear()
    assert (await search.among(ANN, server.may_list, names(3))).names == {"ns-0001"}
    assert server.asked == ["", "ns-0001"], "what was refused is known"


async def test_a_right_that_another_question_has_told_is_known() -> None:
    search = NamespaceSearch(lambda: 0.0)
    assert (await search.among(ANN, Server().may_list, names(3))).names == frozenset()
    search.learn(ANN, "ns-0002")
    assert search.allowed(ANN) == {"ns-0002"}
    assert (await search.among(ANN, Server("ns-0002").may_list, names(3))).names == {"ns-0002"}
    assert search.allowed(User("bob", ())) == frozenset()

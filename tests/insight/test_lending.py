"""Which place lends to which queue: the loans add up, whatever the tree is."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from admitter.engine.commands import Reserve
from admitter.engine.cycle import Engine
from admitter.engine.quota.tree import Node
from admitter.insight.lending import Loan, apportioned, lent, loans, markets
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Snapshot
from tests.engine.builders import cohort, engine, flavor, queue, use
from tests.insight.states import State
from tests.scale import examples

GPU = "nvidia.com/gpu"
KEYS = (("a", "cpu"), ("a", "memory"))
PARENTS = {"c0": ("",), "c1": ("", "c0"), "c2": ("", "c0", "c1"), "c3": ("", "c1", "c2")}
"""Cohorts with the parents that they may get: never a cycle."""


def found(state: State, flavor: str, resource: str) -> list[Loan]:
    engine = Snapshot(facts(state.snapshot())).engine
    made = markets(engine.tree, engine.ledger.real)
    return [loan for market in made if market.key == (flavor, resource) for loan in loans(market)]


def named(loans: list[Loan]) -> list[tuple[str, str, int]]:
    return sorted((loan.lender[1] if loan.lender else "", loan.borrower[1], loan.amount) for loan in loans)


def team(state: State, name: str, minimum: str, use: int = 0, above: str = "research") -> None:
    state.queue(name, {GPU: {"a100": {"min": minimum}}}, above)
    state.namespace(name, name)
    if use:
        state.holds(name, "runs", {GPU: (str(use), "a100")}, cluster_queue=name)


def test_one_queue_borrows_from_each_in_proportion_to_what_it_leaves_unused() -> None:
    state = State("a100")
    team(state, "vision", "8", use=14)
    team(state, "speech", "8", use=0)
    team(state, "language", "16", use=12)
    assert named(found(state, "a100", GPU)) == [("language", "vision", 2), ("speech", "vision", 4)]


def test_whole_devices_are_lent_though_their_parts_are_none() -> None:
    state = State("a100")
    team(state, "vision", "8", use=10)
    team(state, "speech", "8", use=4)
    team(state, "language", "16", use=14)
    assert named(found(state, "a100", GPU)) == [("language", "vision", 1), ("speech", "vision", 1)]


def test_the_own_cohort_lends_first_and_the_rest_comes_from_queues_of_another_one() -> None:
    state = State("a100")
    state.put("cohorts", "all", spec={})
    state.put("cohorts", "research", spec={"parent": "all"})
    state.put("cohorts", "products", spec={"parent": "all"})
    team(state, "vision", "2", use=9)
    team(state, "speech", "4", use=1)
    team(state, "search", "8", use=2, above="products")
    team(state, "ads", "4", use=2, above="products")
    assert named(found(state, "a100", GPU)) == [
        ("ads", "vision", 1),
        ("search", "vision", 3),
        ("speech", "vision", 3),
    ]
    made = Snapshot(facts(state.snapshot())).engine
    outside = lent(made.tree, markets(made.tree, made.ledger.real))
    assert outside[("queue", "search"), ("a100", GPU)] == 3
    assert outside[("cohort", "products"), ("a100", GPU)] == 4
    assert outside[("cohort", "research"), ("a100", GPU)] == 0


def test_a_cohorts_own_quota_is_lent_by_the_cohort() -> None:
    state = State("a100")
    own = [{"name": GPU, "flavors": [{"name": "a100", "quota": {"min": "6"}}]}]
    state.put("cohorts", "research", spec={"resources": own})
    team(state, "vision", "2", use=6)
    team(state, "speech", "2")
    assert named(found(state, "a100", GPU)) == [("research", "vision", 3), ("speech", "vision", 1)]


def test_use_beyond_what_the_tree_has_is_of_no_lender() -> None:
    state = State("a100")
    team(state, "vision", "2", use=6)
    team(state, "speech", "3", use=0)
    team(state, "alone", "1", use=3, above="")
    assert named(found(state, "a100", GPU)) == [("", "alone", 2), ("", "vision", 1), ("speech", "vision", 3)]


amounts = st.integers(0, 9)
maybe = st.none() | amounts


def limits(draw: st.DrawFn) -> str:
    minimum, extra, lending = draw(amounts), draw(maybe), draw(maybe)
    most = "" if extra is None else f"..{minimum + extra}"
    return f"{minimum}{most}{'' if lending is None else f'/{lending}'}"


@st.composite
def trees(draw: st.DrawFn) -> Engine:
    """Cohorts and queues of any shape, with any use, also beyond all limits."""
    cohorts = [
        cohort(name, draw(st.sampled_from(above)), {r: {"a": limits(draw)} for _, r in KEYS})
        for name, above in PARENTS.items()
    ]
    names = [f"q{number}" for number in range(draw(st.integers(1, 7)))]
    queues = [
        queue(
            name,
            {r: {"a": limits(draw)} for _, r in KEYS},
            cohort=draw(st.sampled_from(["", *PARENTS, "only-named"])),
        )
        for name in names
    ]
    made = engine(flavor("a"), *cohorts, *queues)
    for name in names:
        cpu, memory = (str(draw(st.integers(0, 15))) for _ in KEYS)
        made.apply(Reserve(f"uid-{name}", use(name, "a", cpu=cpu, memory=memory)))
    return made


@settings(max_examples=examples(100))
@given(made=trees())
def test_loans_add_up_to_what_each_place_borrows_and_lends(made: Engine) -> None:
    tree, book = made.tree, made.ledger.real
    every = list(markets(tree, book))
    outside = lent(tree, every)
    for key in KEYS:
        all_loans = [loan for market in every if market.key == key for loan in loans(market)]
        assert all(loan.amount > 0 and loan.lender != loan.borrower for loan in all_loans)
        assert len({(loan.lender, loan.borrower) for loan in all_loans}) == len(all_loans)
        for node in tree.parents():
            cell = book.cells(node).get(key)
            borrowed = max(0, cell.used - cell.subtree_quota) if cell is not None else 0

            def below(place: Node | None, node: Node = node) -> bool:
                return place is not None and node in tree.path(place)

            taken = sum(x.amount for x in all_loans if below(x.borrower) and not below(x.lender))
            given_away = sum(x.amount for x in all_loans if below(x.lender) and not below(x.borrower))
            assert taken == borrowed
            assert given_away == outside[node, key]
            own = tree.quotas(node).get(key)
            lends = sum(x.amount for x in all_loans if x.lender == node)
            assert lends <= (own.minimum if own is not None else 0)
            if own is not None and own.lending_limit is not None and tree.parents()[node] is not None:
                assert given_away <= own.lending_limit


@given(parts=st.lists(st.integers(0, 10**18), max_size=9), by=st.fractions(0, 1))
def test_what_is_divided_is_divided_exactly(parts: list[int], by: Fraction) -> None:
    amount = int(sum(parts) * by)
    shares = apportioned(amount, parts)
    assert sum(shares) == amount
    assert all(0 <= share <= part for share, part in zip(shares, parts, strict=True))
    whole = sum(parts)
    pairs = zip(shares, parts, strict=True)
    assert all(abs(share * whole - amount * part) < max(1, whole) for share, part in pairs), (
        "less than one off"
    )

"""Whether a controller decides: what people and programs are told."""

from dataclasses import replace

from admitter.election.rendezvous import shard_of
from admitter.insight.controller_status import (
    REMEDY,
    REMEDY_OF_SHARDS,
    ControllerState,
    ControllerStatus,
    ShardLease,
)
from tests.insight.states import NOW

NOON = NOW + 12 * 3600.0
LEASE = ShardLease(
    0, "admitter-controller", alive=True, holder="pod-a_1", since=NOON - 7500.0, renewed=NOON - 0.2
)
MISSING = ShardLease(0, "admitter-controller", alive=False, exists=False)


def one(lease: ShardLease) -> ControllerStatus:
    return ControllerStatus((lease,), NOON)


def several(*alive: bool | None) -> ControllerStatus:
    """Shards of two controllers; those that are not led were renewed one minute ago."""
    made = [
        replace(
            LEASE,
            shard=number,
            name=f"admitter-controller-shard-{number}" if number else LEASE.name,
            alive=each,
            holder="pod-ab"[: 4 + (number % 2 + 1)],
            renewed=NOON - (0.2 if each else 60.0),
        )
        for number, each in enumerate(alive)
    ]
    return ControllerStatus(tuple(made), NOON, count=len(made))


def test_a_leader_is_named_and_since_when() -> None:
    status = one(LEASE)
    assert (status.state, status.lacks_decisions) == (ControllerState.LEADING, False)
    assert status.sentence() == "Controller pod-a_1 leads since 09:55 UTC (2 h 5 min)."
    assert one(replace(LEASE, since=NOON - 90_000.0)).sentence() == (
        "Controller pod-a_1 leads since 2025-12-31 11:00 UTC (1 d 1 h)."
    )
    assert one(replace(LEASE, since=None)).sentence() == "Controller pod-a_1 leads."
    assert one(replace(LEASE, since=NOON + 60.0)).sentence() == (
        "Controller pod-a_1 leads since 12:01 UTC."
    ), "its clock goes ahead"


def test_a_lease_that_is_not_renewed_says_that_nothing_is_decided() -> None:
    dead = replace(LEASE, alive=False, renewed=NOON - 240.0)
    assert one(dead).state is ControllerState.ABSENT
    assert one(dead).sentence() == (
        "No controller decides: Lease admitter-system/admitter-controller was last renewed 4 min ago "
        f"by pod-a_1. {REMEDY}"
    )
    assert "was last renewed at 12:01 UTC by pod-a_1. " in one(replace(dead, renewed=NOON + 60.0)).sentence()
    assert "is not renewed by pod-a_1. " in one(replace(dead, renewed=None)).sentence()
    left = replace(dead, released=True, since=None)
    assert (
        "was handed over 4 min ago by pod-a_1, and no other controller has taken it. " in one(left).sentence()
    )


def test_without_a_lease_no_controller_has_run() -> None:
    assert one(MISSING).state is ControllerState.ABSENT
    assert one(MISSING).sentence() == (
        f"No controller has run here yet: there is no Lease admitter-system/admitter-controller. {REMEDY}"
    )


def test_what_is_not_known_is_not_said() -> None:
    denied = ControllerStatus((), NOON, "team-a may not list Leases")
    assert (denied.state, denied.lacks_decisions) == (ControllerState.UNKNOWN, False)
    assert denied.sentence() == "Whether a controller runs is unknown: team-a may not list Leases"
    doubtful = one(replace(LEASE, alive=None))
    assert (doubtful.state, doubtful.lacks_decisions) == (ControllerState.UNKNOWN, False)
    assert doubtful.sentence() == (
        "Whether a controller runs is not known yet: its Lease is being looked at."
    )
    assert several(True, None, False).state is ControllerState.UNKNOWN


def test_shards_that_are_all_led_are_told_by_their_leaders() -> None:
    assert several(True, True, True).sentence() == ("All 3 shards have a leader: pod-a (0, 2), pod-ab (1).")


def test_shards_without_a_leader_are_named_and_their_trees() -> None:
    status = several(True, False, True)
    roots = [f"team-{number}" for number in range(20)]
    lost = [root for root in roots if shard_of(root, 3) == 1]
    assert len(lost) > 3, "more than are named"
    assert status.state is ControllerState.PARTIAL
    assert status.sentence(roots) == (
        "No controller decides about shard 1 (Lease admitter-system/admitter-controller-shard-1 was last "
        "renewed 1 min ago by pod-ab), of 3. "
        f"Trees without a controller: {', '.join(lost[:3])} and {len(lost) - 3} more. {REMEDY_OF_SHARDS}"
    )
    assert several(False, False).sentence().startswith("No controller decides about any of 2 shards: ")
    assert several(True, False, False).sentence().startswith("No controller decides about shards 1 (")


def test_of_a_tree_only_its_shard_counts() -> None:
    status = several(True, False, True)
    roots = {shard_of(f"team-{number}", 3): f"team-{number}" for number in range(12)}
    assert [status.about(roots[number]).state for number in range(3)] == [
        ControllerState.LEADING,
        ControllerState.ABSENT,
        ControllerState.LEADING,
    ]
    assert status.about("").shards[0].shard == 0, "what is in no tree"
    assert status.about(roots[2]).sentence().startswith("Controller pod-a leads shard 2 of 3 since 09:55")
    assert status.about(roots[1]).sentence().startswith("No controller decides about shard 1 (")


def test_programs_get_stable_fields() -> None:
    assert one(LEASE).as_json() == {
        "state": "Leading",
        "message": "Controller pod-a_1 leads since 09:55 UTC (2 h 5 min).",
        "holder": "pod-a_1",
        "since": "2026-01-01T09:55:00Z",
        "renewed": "2026-01-01T11:59:59Z",
        "shards": [
            {
                "shard": 0,
                "lease": "admitter-system/admitter-controller",
                "leading": True,
                "holder": "pod-a_1",
                "since": "2026-01-01T09:55:00Z",
                "renewed": "2026-01-01T11:59:59Z",
            }
        ],
    }
    told = several(True, False).as_json()
    assert (told["state"], told["holder"], told["since"], told["renewed"]) == ("Partial", None, None, None)
    assert [each["leading"] for each in told["shards"]] == [True, False]
    missing = one(MISSING).as_json()
    assert (missing["holder"], missing["renewed"], missing["shards"][0]["leading"]) == (None, None, False)
    assert ControllerStatus((), NOON, "no answer").as_json()["shards"] == []

"""A first configuration for a cluster: a flavor for each kind of hardware, a queue for each team.

Before: `hardware` looks at the nodes.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from admitter.insight.hardware import EVERYWHERE, Hardware
from admitter.names import API_VERSION
from admitter.quantities.amounts import CPU, to_quantity
from admitter.quotas.namespaces import NAME_LABEL

Json = dict[str, Any]

COHORT: Final = "teams"
LOCAL_QUEUE: Final = "main"
_UNITS: Final = (1 << 30, 1 << 20, 1)


def first_queues(
    found: Sequence[Hardware], shares: Mapping[str, int], namespaces: frozenset[str]
) -> Iterator[Json]:
    """Manifests, in the order in which to apply them.

    A team has the ClusterQueue of its name, and the LocalQueue `main` in the namespace of its name, which is
    made if it is not among the `namespaces` that exist. Together the teams own what the hardware offers; each
    may borrow what others leave unused, and gets its own back.
    """
    quotas = divided(found, shares)
    for each in found:
        yield _manifest("ResourceFlavor", each.name, _flavor(each))
    for team in shares:
        cohort = {"cohort": COHORT} if len(shares) > 1 else {}
        reclaim = {"preemption": {"reclaimWithinCohort": "Any"}} if cohort else {}
        selector = {"namespaceSelector": {"matchLabels": {NAME_LABEL: team}}}
        resources = {"resources": _resources(found, quotas[team])}
        yield _manifest("ClusterQueue", team, cohort | selector | reclaim | resources)
    for team in shares:
        if team not in namespaces:
            yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team}}
        made = _manifest("LocalQueue", LOCAL_QUEUE, {"clusterQueue": team})
        made["metadata"]["namespace"] = team
        yield made


def divided(found: Sequence[Hardware], shares: Mapping[str, int]) -> dict[str, dict[tuple[str, str], int]]:
    """Each team's `min`, by flavor and resource.

    Devices are scarce, and divided first, as whole ones; what a team gets too little or too much of those
    in one flavor is made up for in the next. All else of a flavor with devices is divided as they are, so
    that each of them can be used.
    """
    quotas: dict[str, dict[tuple[str, str], int]] = {team: {} for team in shares}
    owed = dict.fromkeys(shares, Fraction())
    for each in sorted(found, key=lambda each: (each.scarce is None, each.name)):
        weights = dict(shares)
        if each.scarce is not None:
            weights = _parts(each.offers[each.scarce], shares, owed)
        for resource, amount in each.offers.items():
            unit = _unit(resource, amount, len(shares))
            parts = (
                weights
                if resource == each.scarce
                else _parts(amount // unit, weights, dict.fromkeys(weights, Fraction()))
            )
            for team, part in parts.items():
                quotas[team][each.name, resource] = part * unit
    return quotas


def _parts(amount: int, weights: Mapping[str, int], owed: dict[str, Fraction]) -> dict[str, int]:
    """Whole parts of an amount by weights; what remains goes to the teams that are `owed` most."""
    total = sum(weights.values())
    exact = {team: Fraction(amount * weight, total) + owed[team] for team, weight in weights.items()}
    parts = {team: max(0, int(part)) for team, part in exact.items()}
    while sum(parts.values()) != amount:
        step = 1 if sum(parts.values()) < amount else -1
        able = [team for team in parts if parts[team] + step >= 0 and weights[team]]
        team = max(able, key=lambda team: step * (exact[team] - parts[team]))
        parts[team] += step
    owed.update({team: exact[team] - parts[team] for team in parts})
    return parts


def _unit(resource: str, amount: int, teams: int) -> int:
    """The largest round amount with which each team can get several."""
    units = (1000, 100, 1) if resource == CPU else (1,) if "/" in resource else _UNITS
    return next(unit for unit in units if unit == 1 or amount >= 4 * teams * unit)


def _flavor(hardware: Hardware) -> Json:
    spec: Json = {"nodeLabels": dict(hardware.labels)} if hardware.labels else {}
    if hardware.taints:
        spec["nodeTaints"] = [
            {"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}
            for taint in hardware.taints
        ]
    if hardware.gpu_memory:
        spec["gpuMemoryGB"] = hardware.gpu_memory
    return spec


def _resources(found: Sequence[Hardware], quotas: Mapping[tuple[str, str], int]) -> list[Json]:
    """All resources in all flavors: a pod gets one flavor for all that it requests."""
    resources = {resource for each in found for resource in each.offers}
    ordered = [*(r for r in EVERYWHERE if r in resources), *sorted(resources - {*EVERYWHERE})]
    return [
        {
            "name": resource,
            "flavors": [
                {
                    "name": each.name,
                    "quota": {"min": to_quantity(resource, quotas.get((each.name, resource), 0))},
                }
                for each in found
            ],
        }
        for resource in ordered
    ]


def _manifest(kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}

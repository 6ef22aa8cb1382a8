"""The quota tree: all queues and Cohorts, their use, how many wait in each, and which lends to which."""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from admitter.engine.model import FlavorResource
from admitter.engine.quota.tree import Node
from admitter.insight.lending import Loan, loans, markets
from admitter.policy.messages import node_title
from admitter.quantities.amounts import CPU, display
from admitter.web.asked import Asked, HttpRefusal
from admitter.web.scene import WebScene, line_json

Json = dict[str, Any]

MOST_LOANS: Final = 200
"""Loans of a place that are told one by one, the largest; the others are added up."""
POINTS: Final = 32
"""Of the small picture of a queue's use."""


async def answer(asked: Asked) -> Json:
    """All places of the tree, each before those below it."""
    await asked.sight.require_tree()
    lines = await asyncio.to_thread(asked.scene.once, "quota tree", partial(_lines, asked.scene))
    return {"taken": asked.scene.known.taken, "lines": lines}


def _lines(scene: WebScene) -> list[Json]:
    tree = scene.snapshot.engine.tree
    return [
        {
            **line_json(line),
            # only where it counts
            "weight": float(tree.weight(line.node)) if tree.fair(tree.path(line.node)[-1]) else None,
        }
        for line in scene.lines
    ]


async def sparks(asked: Asked) -> Json:
    """Of each queue the use of its scarcest resource over the last hours, as a few points."""
    await asked.sight.require_tree()
    found = await asyncio.to_thread(asked.stage.history.sparks, POINTS)
    return {
        "taken": asked.scene.known.taken,
        "queues": {
            name: {
                "flavor": each.flavor,
                "resource": each.resource,
                "used": each.used,
                "quota": each.quota,
                "seconds": each.seconds,
            }
            for name, each in found.items()
        },
    }


async def lending(asked: Asked) -> Json:
    """The loans of a place of the tree, of one resource in one flavor: with others, and below it."""
    await asked.sight.require_tree()
    scene, query = asked.scene, asked.query
    node = (query.get("kind", ""), query.get("name", ""))
    key = (query.get("flavor", ""), query.get("resource", ""))
    line = next((each for each in scene.lines if each.node == node), None)
    if line is None:
        raise HttpRefusal(404, f"there is no {'Cohort' if node[0] == 'cohort' else 'queue'} {node[1]}")
    use = next((each for each in line.uses if (each.flavor, each.resource) == key), None)
    if use is None:
        raise HttpRefusal(404, f"{line.title} has no {key[1]} in flavor {key[0]}")
    found = await asyncio.to_thread(_loans_of, scene, node, key)
    return {
        "taken": scene.known.taken,
        "place": _place(node),
        "flavor": use.flavor,
        "resource": use.resource,
        "borrowed": _amount(use.resource, use.borrowed),
        "lent": _amount(use.resource, use.lent),
        "loans": [_loan(each, scene, node, use.resource) for each in found[:MOST_LOANS]],
        "more": len(found[MOST_LOANS:]),
        "moreAmount": _amount(use.resource, sum(each.amount for each in found[MOST_LOANS:])),
    }


def _loans_of(scene: WebScene, node: Node, key: FlavorResource) -> list[Loan]:
    """The largest first."""
    every = scene.once(f"loans of {key[1]} in {key[0]}", lambda: list(_loans(scene, key)))
    found = [each for each in every if _is_in(scene, each.borrower, node) or _is_in(scene, each.lender, node)]
    return sorted(found, key=lambda each: (-each.amount, each.borrower, each.lender or ("", "")))


def _loans(scene: WebScene, key: FlavorResource) -> Iterator[Loan]:
    engine = scene.snapshot.engine
    for market in scene.once("markets", lambda: list(markets(engine.tree, engine.ledger.real))):
        if market.key == key:
            yield from loans(market)


def _is_in(scene: WebScene, place: Node | None, node: Node) -> bool:
    return place is not None and node in scene.snapshot.engine.tree.path(place)


def _loan(loan: Loan, scene: WebScene, node: Node, resource: str) -> Json:
    return {
        "lender": _place(loan.lender) if loan.lender is not None else None,
        "borrower": _place(loan.borrower),
        "amount": _amount(resource, loan.amount),
        "borrows": _is_in(scene, loan.borrower, node),  # the place, or something below it
        "lends": _is_in(scene, loan.lender, node),
    }


def _place(node: Node) -> Json:
    return {"kind": node[0], "name": node[1], "title": node_title(*node)}


def _amount(resource: str, amount: int) -> Json:
    return {"value": amount / (1000 if resource == CPU else 1), "words": display(resource, amount)}

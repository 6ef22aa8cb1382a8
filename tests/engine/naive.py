"""The quota rules a second time, as plainly as they can be written: everything is recomputed on every call.

It shares no code with the engine but the values of `admitter.engine.policy`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from admitter.engine.model import FlavorResource
from admitter.engine.policy import Cohort, Queue, Quota

Use = Mapping[str, Counter[FlavorResource]]
"""What is in use, by queue."""


@dataclass(frozen=True)
class Naive:
    """Definitions; cohorts must not form a cycle."""

    queues: Mapping[str, Queue]
    cohorts: Mapping[str, Cohort]

    def parent(self, kind: str, name: str) -> str:
        if kind == "queue":
            return self.queues[name].cohort
        return self.cohorts[name].parent if name in self.cohorts else ""

    def quota(self, kind: str, name: str, key: FlavorResource) -> Quota:
        objects: Mapping[str, Queue | Cohort] = self.queues if kind == "queue" else self.cohorts
        found = objects.get(name)
        return found.quotas.get(key, Quota()) if found is not None else Quota()

    def children(self, kind: str, name: str) -> list[tuple[str, str]]:
        if kind == "queue":
            return []
        names = set(self.cohorts) | {q.cohort for q in self.queues.values()}
        names |= {c.parent for c in self.cohorts.values()}
        return [("queue", q) for q in self.queues if self.parent("queue", q) == name] + [
            ("cohort", c) for c in names - {""} if self.parent("cohort", c) == name
        ]

    def has(self, kind: str, name: str, key: FlavorResource) -> int:
        """All that a subtree has."""
        lent = sum(self.lends(*child, key) for child in self.children(kind, name))
        return self.quota(kind, name, key).minimum + lent

    def lends(self, kind: str, name: str, key: FlavorResource) -> int:
        has, limit = self.has(kind, name, key), self.quota(kind, name, key).lending_limit
        return has if limit is None else min(has, limit)

    def takes(self, kind: str, name: str, key: FlavorResource, use: Use) -> int:
        """What use of a subtree the node above must provide."""
        if not self.parent(kind, name):
            return 0
        keeps = self.has(kind, name, key) - self.lends(kind, name, key)
        return max(0, self.arrives(kind, name, key, use) - keeps)

    def arrives(self, kind: str, name: str, key: FlavorResource, use: Use) -> int:
        """Use that a node has to provide for."""
        if kind == "queue":
            return use.get(name, Counter())[key]
        return sum(self.takes(*child, key, use) for child in self.children(kind, name))

    def total(self, kind: str, name: str, key: FlavorResource, use: Use) -> int:
        """Use of a whole subtree."""
        if kind == "queue":
            return use.get(name, Counter())[key]
        return sum(self.total(*child, key, use) for child in self.children(kind, name))

    def excesses(self, key: FlavorResource, use: Use) -> dict[tuple[str, str, str], int]:
        """By how much each limit of the tree is passed; 0 where it is kept."""
        nodes = [("queue", name) for name in self.queues]
        nodes += [("cohort", name) for name in {n for q in self.queues for n in self.above(q)}]
        found = {}
        for kind, name in nodes:
            maximum = self.quota(kind, name, key).maximum
            if maximum is not None:
                found[kind, name, "max"] = max(0, self.total(kind, name, key, use) - maximum)
            if not self.parent(kind, name):
                over = self.arrives(kind, name, key, use) - self.has(kind, name, key)
                found[kind, name, "quota"] = max(0, over)
        return found

    def above(self, queue: str) -> list[str]:
        """The cohorts above a queue, upwards."""
        found = []
        name = self.queues[queue].cohort
        while name:
            found.append(name)
            name = self.parent("cohort", name)
        return found

    def share(self, kind: str, name: str, use: Use) -> tuple[bool, Fraction]:
        """Whether the weighted dominant share is endless, and how large it is else."""
        parent = self.parent(kind, name)
        keys = {key for node in self.everything() for key in self.keys(*node, use)}
        borrowed: Counter[str] = Counter()
        lendable: Counter[str] = Counter()
        for key in keys if parent else ():
            borrowed[key[1]] += max(0, self.arrives(kind, name, key, use) - self.has(kind, name, key))
            lendable[key[1]] += self.most("cohort", parent, key)
        ratios = [Fraction(b, lendable[r]) if lendable[r] else None for r, b in borrowed.items() if b]
        objects: Mapping[str, Queue | Cohort] = self.queues if kind == "queue" else self.cohorts
        weight = objects[name].weight if name in objects else Fraction(1)
        if ratios and (not weight or None in ratios):
            return True, Fraction(0)
        return False, max((r for r in ratios if r is not None), default=Fraction(0)) / (weight or 1)

    def most(self, kind: str, name: str, key: FlavorResource) -> int:
        """What a node could use of an empty tree."""
        limits, free = [], 0
        for step in [name, *self.above_cohort(name)]:
            parent = self.parent(kind, step)
            free += self.has(kind, step, key) - (self.lends(kind, step, key) if parent else 0)
            limits.append(self.quota(kind, step, key).maximum)
        return min([free, *(limit for limit in limits if limit is not None)])

    def everything(self) -> list[tuple[str, str]]:
        names = {n for q in self.queues for n in self.above(q)} | set(self.cohorts)
        return [("queue", q) for q in self.queues] + [("cohort", c) for c in names]

    def keys(self, kind: str, name: str, use: Use) -> set[FlavorResource]:
        objects: Mapping[str, Queue | Cohort] = self.queues if kind == "queue" else self.cohorts
        defined = set(objects[name].quotas) if name in objects else set()
        return defined | set(use.get(name, ())) if kind == "queue" else defined

    def above_cohort(self, cohort: str) -> list[str]:
        parent = self.parent("cohort", cohort)
        return [parent, *self.above_cohort(parent)] if parent else []

    def fits(self, queue: str, usage: Mapping[FlavorResource, int], use: Use) -> bool:
        """Whether a request makes no excess, and makes none worse."""
        after = {name: Counter(counter) for name, counter in use.items()}
        after.setdefault(queue, Counter()).update(usage)
        for key, amount in usage.items():
            if not amount:
                continue
            mine = {("queue", queue), *(("cohort", name) for name in self.above(queue))}
            before, then = self.excesses(key, use), self.excesses(key, after)
            for (kind, name, limit), over in then.items():
                grown = over > before.get((kind, name, limit), 0)
                if (kind, name) in mine and (grown or (limit == "max" and over)):
                    return False
        return all(
            sum(amount for key, amount in after[queue].items() if key[1] == resource) <= limit
            for resource, limit in self.queues[queue].limits.items()
            if any(amount and key[1] == resource for key, amount in usage.items())
        )

    def namespace_share(
        self, queue: str, used: Mapping[FlavorResource, int], weight: int
    ) -> tuple[bool, Fraction]:
        """Whether the share of what a namespace uses in a queue is endless, and how large it is else."""
        sums: Counter[str] = Counter()
        for (_, resource), amount in used.items():
            sums[resource] += amount
        ratios: list[Fraction | None] = []
        for resource, amount in sums.items():
            keys = [key for key in self.queues[queue].quotas if key[1] == resource]
            most = sum(self.most_of_queue(queue, key) for key in keys)
            most = min(most, self.queues[queue].limits.get(resource, most))
            ratios += [Fraction(amount, most * weight) if most > 0 else None] if amount else []
        return None in ratios, max(
            (r for r in ratios if r is not None and None not in ratios), default=Fraction(0)
        )

    def most_of_queue(self, queue: str, key: FlavorResource) -> int:
        """What a queue could use of one flavor if nothing else were in use."""
        parent, quota = self.queues[queue].cohort, self.quota("queue", queue, key)
        kept = self.has("queue", queue, key) - (self.lends("queue", queue, key) if parent else 0)
        limits = [self.queues[queue].limits.get(key[1]), quota.maximum]
        free = kept
        for step in self.above(queue):
            free += self.has("cohort", step, key)
            free -= self.lends("cohort", step, key) if self.parent("cohort", step) else 0
            limits.append(self.quota("cohort", step, key).maximum)
        return min([free, *(limit for limit in limits if limit is not None)])

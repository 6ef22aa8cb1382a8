"""What has to be true of extra pods, with arithmetic of its own."""

# each method takes what all checks are told, and some need less

from admitter.engine.growth import Resizing
from admitter.engine.model import FlavorResource
from admitter.engine.tree_cycle import Plan
from tests.engine.scenarios import claims
from tests.engine.scenarios.arithmetic import Use, ways
from tests.engine.scenarios.checks import Idle, least, planned
from tests.engine.scenarios.driver import Check, Play
from tests.engine.scenarios.growing import real, used


def kept(play: Play) -> dict[str, dict[FlavorResource, int]]:
    """What is in use once all is as planned, with the extra pods that are to go on."""
    sums = planned(play)
    for uid, running in play.world.running.items():
        if play.engine.ledger.preemptor(uid) is None:
            for part, extra in running.extra.items():
                used(sums, running, extra.kept, part)
    return sums


class Extra(Check):
    """Workloads grow on idle quota alone, and shrink before anything is evicted, by no more than needed."""

    rule = "extra"

    def decided(self, play: Play, plan: Plan) -> None:
        grown = [each for each in plan.resized if self._by(play, each) > 0]
        self._evicts_as_the_last(play, plan)
        if grown:
            self._waits_for_nothing(play, grown)
        use = real(play.world)
        for each in grown:
            running = play.world.running[each.holder]
            usage = dict(running.extra[each.part].use(self._by(play, each)))
            too_much = play.world.quotas().too_much(running.admission.queue, usage, use)
            self.met += 1
            if too_much:
                raise self.broken(f"{each.holder} grows, and passes {too_much}")
            if not play.world.queues[running.admission.queue].admits:
                raise self.broken(f"{each.holder} grows in a queue that is stopped")
            used(use, running, self._by(play, each), each.part)

    @staticmethod
    def _by(play: Play, each: Resizing) -> int:
        return each.extra.granted - play.world.running[each.holder].extra[each.part].granted

    def _waits_for_nothing(self, play: Play, grown: list[Resizing]) -> None:
        """Nothing that waits in the trees of those that grow could have been admitted instead."""
        quotas = play.world.quotas()
        roots = {quotas.root(play.world.running[each.holder].admission.queue) for each in grown}
        for uid, hold in play.engine.ledger.pending_reservations.items():
            if quotas.root(hold.queue) in roots:
                raise self.broken(f"{grown[0].holder} grows, and {uid} waits for its place")
        if any(play.engine._state.claims.amounts(name) for name in play.world.queues):
            return  # what is withheld for an owner may be lent to extra pods; `idle` checks that at rest
        flavors = {flavor.name: flavor for flavor in play.scenario.flavors}
        use = planned(play)
        for workload in Idle.eligible(play):
            backed_off = play.engine.returned.of(workload.queue, workload.namespace) is not None
            if quotas.root(workload.queue) not in roots or backed_off:
                continue  # during a back-off it has its turn after all others of a strict queue
            self.met += 1
            for form in {workload.pod_sets: workload, least(workload).pod_sets: least(workload)}.values():
                for usage in ways(form, play.world.queues[workload.queue], flavors):
                    if not claims.withheld(play, workload, usage, use) and not quotas.too_much(
                        workload.queue, usage, use
                    ):
                        raise self.broken(f"{grown[0].holder} grows, and {workload.uid} would fit")

    def _evicts_as_the_last(self, play: Play, plan: Plan) -> None:
        """Nothing is evicted for what has room once all extra pods are gone."""
        preemptors = {each.preemptor.uid: each for each in plan.evictions}
        if len(preemptors) != 1 or plan.admissions or plan.reassigned or len(plan.planned) != 1:
            return  # what else was decided may have made the room, or taken it
        ((uid, eviction),) = preemptors.items()
        if uid not in play.engine.ledger.pending_reservations:
            return
        use = planned(play, without=uid)
        for each in plan.evictions:
            victim = play.world.use([each.victim.holder])
            for name, sums in victim.items():
                queue = use.setdefault(name, {})
                for key, amount in sums.items():
                    queue[key] = queue.get(key, 0) + amount
        self.met += 1
        usage = dict(eviction.admission.usage)
        if not play.world.quotas().too_much(eviction.preemptor.queue, usage, use):
            raise self.broken(f"{eviction.victim.holder} has to go for {uid}, which fits without extra pods")

    def quiet(self, play: Play) -> None:
        before, after = planned(play), kept(play)
        if before == after:
            return
        self.met += 1
        excess = self._excess(play, after, before)
        if excess:
            raise self.broken(f"extra pods that go on are beyond {excess}")

    def resized(self, play: Play, plan: Plan) -> None:
        """As few as possible end."""
        shrunk = [each for each in plan.resized if each.extra.kept < each.extra.granted]
        if len(shrunk) != len(plan.resized) or not shrunk:
            return
        use = kept(play)
        for each in shrunk:
            running = play.world.running[each.holder]
            more = {name: dict(sums) for name, sums in use.items()}
            used(more, running, 1, each.part)
            self.met += 1
            if not self._excess(play, more, use):
                raise self.broken(f"an extra pod of {each.holder} ends that is in the way of nothing")

    @staticmethod
    def _excess(play: Play, use: Use, before: Use) -> str:
        """Which limit some use passes by more than another one does."""
        quotas = play.world.quotas()
        keys = {key for sums in use.values() for key in sums}
        for key in sorted(keys):
            less = quotas.excesses(key, before)
            for (node, limit), over in quotas.excesses(key, use).items():
                if over > less[node, limit]:
                    return f"{limit} of {node[1]} for {key[1]} in {key[0]}, by {over}"
        for name, queue in play.world.queues.items():
            for resource, most in queue.limits.items():
                sums = [
                    sum(n for key, n in each.get(name, {}).items() if key[1] == resource)
                    for each in (use, before)
                ]
                if sums[0] > max(most, sums[1]):
                    return f"the limit of {name} for {resource}"
        return ""

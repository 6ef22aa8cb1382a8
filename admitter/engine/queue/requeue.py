"""When an inadmissible equivalence class is tried again: all of the rules, by what has happened.

The invariant: **no workload that could be admitted now, or evict others now, is left inadmissible.** A class
that is requeued in vain costs a nomination; one that is missed waits until something else requeues it. So a
rule may select too much, and never too little. `tests/engine/test_requeue.py` compares every refusal that
stands with what a new engine finds, and `test_requeue_rules.py` leaves out one rule after the other.

A class that is admissible already is concerned by no rule, and one that nothing concerns costs nothing.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from admitter.engine.queue import events
from admitter.engine.queue.selection import Selection
from admitter.engine.quota.extras import Extras

Rule = Callable[[Selection, Any], set[str]]
"""Requeues the classes that an event of a certain type concerns; returns their queues."""

TABLE: Final[Mapping[type[events.Event], tuple[Rule, ...]]] = {
    # Something is free: what lacked no more than that may fit, and the queue may take back what it lent.
    #   Hard: the sum counts, not the single end: a class is found once all that was freed since its refusal
    #   covers what it lacked. A limit on all flavors makes what is freed in one of them felt in all. And what
    #   the queue may take from others grows even if what was freed is gone again at once.
    #   Example: `a` owns 4 and uses all 8 of its cohort; a Job of 4 waits in it. One of 1 ends: 1 < 4, and
    #   7 + 4 is beyond its own, so nothing is tried. Six more end, each followed by one of `b`, and then the
    #   last: `a` uses 0, so its Job reclaims 3, though only 1 is free. In the same way it takes over a
    #   pending reservation of its queue, once the queue is within its own with the Job in that place.
    events.UsageShrank: (
        Selection.with_room,
        Selection.entitled,
        Selection.on_smaller_side,
        Selection.by_larger_guarantee,
        Selection.itself,
    ),
    # Others may have what was claimed: with nothing freed, it has become free for those that would borrow.
    #   Hard: what the claimant itself has got is not free; and all claims of a tree are made anew before any
    #   class is looked at, since another queue may claim the same.
    #   Example: 2 are free, and `a` waits for 4 of its own. A Job of `b` that would borrow 2 waits, until the
    #   one of `a` is withdrawn.
    events.ClaimsLessened: (Selection.with_room,),
    # Less is free, but more can be taken: victims have come in, or shares have become unequal.
    #   Hard: rank alone lets no class in that was refused before (what came later must not make room for it),
    #   but shares may. And the newcomer need not be the victim: a queue that borrows more, or has a larger
    #   share, may lose a workload that it had to keep before.
    #   Example: `a` and `b` share 7 by weight. `a` runs an important Job of 2 and another one of 3; a Job of
    #   3 waits in `b`: without the other one `a` would have 2, less than the 3 that `b` takes. An important
    #   Job of 2 starts in `a`: now it keeps 4, and the one of 3 is evicted.
    events.UsageGrew: (
        Selection.evicting_within,
        Selection.with_smaller_share,
        Selection.evicting_borrowers,
        Selection.by_guarantee,
    ),
    # More important workloads of the queue can take the pending reservation over, without an eviction.
    #   Hard: to them what is reserved is room, though it is free neither before nor after.
    #   Example: `high` waits for 4. A victim of another workload, now withdrawn, leaves 2 by the plan: `low`
    #   gets a pending reservation for them. From now on 2 more are enough for `high`, which takes over these.
    events.PendingReservationMade: (Selection.more_important, Selection.itself),
    # Once per round of a tree cycle, what has room beside all but claims is looked at: that is kept from
    # evicting as long as it has, and what relied on pending evictions until these are started or cancelled.
    # With fair sharing, so is what has room for a part of what it asks: with less room more may be evicted.
    #   Hard: the room goes although nothing is freed, so no other row finds it.
    #   Example: 2 are free and claimed by `a`. A Job of `b` for 2 may evict, but need not: it waits for the
    #   claim. `a` takes the 2: now there is no room, and the Job of `b` evicts.
    events.RoundBegan: (Selection.kept_out_by_claims,),
    # An equal workload may be older than the one that was refused for its class.
    #   Hard: age is no part of what makes workloads alike, but with `LowerOrNewerEqualPriority` it decides.
    #   Example: `young` finds only older victims. A Job of its shape, but made earlier, may evict some.
    events.Arrived: (Selection.older, Selection.itself),
    # The next candidate may be another one, and is tried if it never was; what was refused stays refused.
    #   Hard: a tree with no changed queue is not looked at, whatever is admissible in it: what is behind a
    #   strict head that is withdrawn, what waits of a namespace that is next now, what is displaced no longer
    #   (it is of another class), and pending reservations that wait for what others leave.
    #   Example: a strict queue's first Job, refused, is withdrawn: the second, never tried, may fit.
    events.NextMayDiffer: (Selection.itself,),
    # A workload has run for its `minRuntime`: now it is a candidate.
    #   Hard: nothing is reported at that moment. The refusal has noted the first such time.
    #   Example: all run for 3 s less than granted: refused at 0 s, tried again at 3 s.
    events.TimerDue: (Selection.all_of_queue, Selection.itself),
    # A namespace evicts nothing for a while, or again.
    #   Hard: what it has waiting is of classes of its own meanwhile, and the claims of its queue change.
    #   Example: 2 of `a` are lent; its next Job evicts for them only after 10 s.
    events.BackOffTurned: (Selection.all_of_queue, Selection.itself),
    # Weights, what is known of a holder, or the process that decides has changed: anything may be different.
    #   Hard: what was an orphaned pod becomes a workload that may be evicted, with the same use.
    #   Example: the weight of a namespace rises from 1 to 2: its share halves, and it may take from others.
    events.TermsChanged: (Selection.all_of_queue, Selection.itself),
    # A victim counts again: there is less room, but it may be evicted for others.
    #   Hard: these were refused while it was out of the plan, and nothing is freed for them.
    #   Example: the API server refuses to evict `low` for `high`, which is withdrawn: now `next` evicts it.
    events.EvictionCancelled: (Selection.all_of_tree,),
    # Limits leave more evictions than before.
    #   Hard: an eviction that was in flight ends by itself, or its record is corrected: nothing else tells.
    #   Example: one eviction an hour, and `low` goes for `high`. It ends before it was told to: now `next`
    #   may be evicted for what waits in another queue.
    events.FewerEvictions: (Selection.all_of_tree,),
    # Limits leave more evictions at another time than was thought.
    #   Hard: nothing more may be evicted now, but what waits is told another time, and tried again then.
    #   Example: what is in flight counts as if it began now; once it is recorded it is for a second more.
    events.EvictionsMoved: (Selection.kept_by_limits,),
    # Quotas, policies, flavors or the tree are other ones.
    #   Hard: a queue that moves concerns the tree that it leaves, too; one that holds nothing and owns
    #   nothing concerns no other queue.
    #   Example: `b` gets a `lendingLimit`: what `a` could borrow is kept, and what `b` waits for is its own.
    events.Redefined: (Selection.all_concerned,),
}
"""For each event the classes that it may let in; in comments the hard case, and an example."""


BY_PREEMPTION: Final[frozenset[Rule]] = frozenset(
    {
        *(Selection.entitled, Selection.on_smaller_side, Selection.by_larger_guarantee),
        *(Selection.evicting_within, Selection.with_smaller_share, Selection.evicting_borrowers),
        Selection.by_guarantee,
    }
)
"""What these select preempts; in a tree in which no queue may, they are not asked."""
_OF_USE: Final = (events.UsageShrank, events.UsageGrew)  # the events with such rules


class Requeue:
    """Takes events, and requeues by the table."""

    def __init__(self, selection: Selection, extras: Extras) -> None:
        self._selection = selection
        self._extras = extras  # is told where something may have become idle
        self._rules = {event: [partial(rule, selection) for rule in rules] for event, rules in TABLE.items()}
        self._without_preemption = {
            event: [partial(rule, selection) for rule in rules if rule not in BY_PREEMPTION]
            for event, rules in TABLE.items()
        }

    def __call__(self, event: events.Event) -> set[str]:
        """Requeue what an event concerns; returns the queues of that."""
        if self._extras:
            self._tell_of_idle(event)
        rules = self._rules
        if isinstance(event, _OF_USE) and not self._selection.is_preempting(event.queue):
            rules = self._without_preemption
        names: set[str] = set()
        for rule in rules[type(event)]:
            found = rule(event)
            if found:
                names |= found
        self._selection.changed |= names
        return names

    def _tell_of_idle(self, event: events.Event) -> None:
        if isinstance(event, events.Redefined):
            self._extras.redefined()
        elif not isinstance(event, events.RoundBegan):
            self._extras.touch(event.queue)

"""The controller, put together: each part gets what it needs by its constructor.

One Job's way: `views` → `jobs` (its Workload) → `gate` → `admission` (engine, status) → `jobs` (its start).
Which change concerns which part says `controllers.routing`; `controllers.lifecycle` runs it.
"""

from functools import partial
from random import Random

from admitter.cache.world import World
from admitter.client.informer import Informer
from admitter.client.pace import Pace
from admitter.client.signal import Signal
from admitter.client.store import Key
from admitter.client.transport import Transport
from admitter.controllers.guarded import tree_failed
from admitter.controllers.placement.local_queues import LocalQueueRules
from admitter.controllers.placement.namespace_queues import NamespaceQueues
from admitter.controllers.placement.placement import Placement
from admitter.controllers.quota_status.job_kinds import JobKindConditions
from admitter.controllers.quota_status.statuses import QuotaStatuses
from admitter.controllers.telemetry.decisions import Decisions
from admitter.controllers.telemetry.events import Events
from admitter.controllers.telemetry.makers import Makers
from admitter.controllers.telemetry.metrics import Metrics, StateMetrics
from admitter.controllers.unreadable import UnreadableObjects
from admitter.controllers.workload.admission import Admissions
from admitter.controllers.workload.deadlines import Deadlines
from admitter.controllers.workload.eviction import Evictions, ShortageEvictions
from admitter.controllers.workload.eviction_records import EvictionRecords
from admitter.controllers.workload.grace import GracePeriods
from admitter.controllers.workload.held_status import HeldPods
from admitter.controllers.workload.jobs import Jobs
from admitter.controllers.workload.marks import Marks
from admitter.controllers.workload.memory_room import MemoryRoom
from admitter.controllers.workload.pod_jobs import GroupJobs
from admitter.controllers.workload.readiness import ReadyTimeouts
from admitter.controllers.workload.refused_starts import RefusedStarts
from admitter.controllers.workload.resizes import Resizes
from admitter.controllers.workload.unscheduled import UnscheduledPods
from admitter.controllers.workload.waiting import WaitingReasons
from admitter.convert.settings import DEFAULTS, Settings
from admitter.engine.cycle import Engine
from admitter.following.kind_informers import KindInformers
from admitter.policy.catalog import Catalog
from admitter.policy.gate import Gate
from admitter.policy.gate_readiness import backing_off
from admitter.policy.namespace_weights import NamespaceWeights
from admitter.policy.shortage import Shortages
from admitter.policy.status import Clock


class App:
    """All parts of one controller on one API server; what they do is documented at their classes."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        random: Random,
        settings: Settings = DEFAULTS,
        metrics: Metrics | None = None,
        engine: Engine | None = None,
    ) -> None:
        """Build all parts; none of them does anything yet.

        The clock tells the time in UTC, and `random` spreads load over time.
        """
        pace = Pace()
        self.transport = transport
        self.metrics = metrics if metrics is not None else Metrics()
        self.engine = engine if engine is not None else Engine(tree_failed)
        self.world = world = World()
        self.room = MemoryRoom(world.read_workloads, transport)
        self.kind_returned: Signal[[]] = Signal()  # the API server serves a kind again
        read = [*world.sources, world.read_queued_pods]
        self.informers = [Informer(transport, source, random, self.kind_returned) for source in read]
        self.kinds = KindInformers(world, transport, random)
        self.catalog = catalog = Catalog(world, self.engine, settings.gpus)
        self.weights = NamespaceWeights(world, self.engine)
        self.events = Events(transport, clock, pace)
        self.refused = RefusedStarts()
        backs_off = partial(backing_off, clock)
        gate = Gate(world, catalog, settings.requeue_by, self.refused.why, backs_off)
        makers = Makers(world, self.events, transport)
        self.reasons = WaitingReasons(world, gate, self.events, transport, clock, pace, makers)
        self.marks = Marks(world, self.engine.capacity, transport, pace, self.events)
        self.job_kinds = JobKindConditions(world, self.kinds, transport)
        self.local_queues = LocalQueueRules(world, catalog, transport)
        self.statuses = QuotaStatuses(
            world, catalog, self.engine, transport, clock, pace, self.job_kinds.found, self.local_queues.taken
        )
        self.unscheduled = UnscheduledPods(world, self.events, clock)
        self.decisions = Decisions(self.metrics, world.workloads.get)
        # a Workload with this key has come to the end of its grace period, or of its maximum run time
        self.grace_over: Signal[[Key]] = Signal()
        self.grace = GracePeriods(self.engine.ledger, clock, self.grace_over)
        self.deadlines = Deadlines(clock, self.grace_over)
        shortages = Shortages(self.engine, catalog)
        self.groups = GroupJobs(world, self.events, transport, clock)
        self.ready = ReadyTimeouts(world, catalog, clock, transport, self.metrics.ready)
        records = EvictionRecords(world, self.engine.tree, transport, clock)
        self.evictions = Evictions(
            world, catalog, self.grace, shortages, self.refused, self.groups, self.ready, transport, records
        )
        self.held = HeldPods(world, transport, clock)
        self.resizes = Resizes(world, transport, self.events, clock)
        self.jobs = Jobs(
            world, catalog, self.events, self.marks, self.evictions, self.held, self.resizes, transport
        )
        self.admissions = Admissions(
            world, self.engine, catalog, gate, self.reasons, self.grace, transport, records
        )
        self.shortage_evictions = ShortageEvictions(
            world, shortages, self.admissions.keys_of, self.jobs.queue.add, clock
        )
        self.namespaces = NamespaceQueues(world, self.events, transport, catalog.news.queue)
        self.placement = Placement(world, catalog, self.events, transport, clock)
        self.unreadable = UnreadableObjects(
            world, self.events, catalog, self.statuses, self.admissions, self.jobs
        )
        self.metrics.state = StateMetrics(self.engine, self.statuses, self.admissions.deciding)

"""The words that statuses use: states, condition types and their reasons.

Each member's docstring is what the documentation says of it.
"""

from enum import StrEnum
from typing import Final


class WorkloadState(StrEnum):
    """A Workload's life in one word, as `kubectl get workloads` shows it."""

    PENDING = "Pending"
    """It waits for quota; `reason` says why."""
    ADMITTED = "Admitted"
    """It holds its quota and its Job may run."""
    EVICTED = "Evicted"
    """It must stop; its quota is free once its pods are gone."""
    FINISHED = "Finished"
    """Its Job is over."""


class ConditionType(StrEnum):
    """Types of conditions."""

    QUOTA_RESERVED = "QuotaReserved"
    """On a Workload: quota for all of it is set aside."""
    ADMITTED = "Admitted"
    """On a Workload: its Job may run."""
    EVICTED = "Evicted"
    """On a Workload: it had to stop, or must."""
    PREEMPTED = "Preempted"
    """On a Workload: it had to stop for another one, named in the message if of the same namespace."""
    EVICTION_PENDING = "EvictionPending"
    """On a Workload: it will have to stop at the time that the message names, for another one."""
    FINISHED = "Finished"
    """On a Workload: its Job is over."""
    ACTIVE = "Active"
    """On queues, elastic quotas, flavors and JobKinds: whether they work."""


class WaitingReason(StrEnum):
    """Why a Workload waits: reasons of `QuotaReserved=False`."""

    INSUFFICIENT_QUOTA = "InsufficientQuota"
    """Its queue has enough of what it asks for, but not free."""
    NEVER_FITS = "NeverFits"
    """It asks for more than its queue has in all."""
    NO_MATCHING_FLAVOR = "NoMatchingFlavor"
    """Taints or labels keep it from every flavor of its queue."""
    RESOURCE_NOT_COVERED = "ResourceNotCovered"
    """It asks for a resource that its queue does not count."""
    NOTHING_REQUESTED = "NothingRequested"
    """It asks for none of what its queue counts."""
    BEHIND_HEAD = "BehindHead"
    """Its queue is StrictFIFO and something before it waits."""
    PREEMPTING = "Preempting"
    """It has a pending reservation: it is admitted once what it waits for has ended."""
    PREEMPTION_BACKED_OFF = "PreemptionBackedOff"
    """Places that evictions had made were given back unused: nothing is evicted for it for a while."""
    EVICTIONS_LIMITED = "EvictionsLimited"
    """Those that could be evicted for it were evicted lately as often as a limit of their queue allows."""
    QUEUE_NOT_FOUND = "QueueNotFound"
    """Its label names a LocalQueue that does not exist in its namespace."""
    QUEUE_STOPPED = "QueueStopped"
    """Its LocalQueue has a stopPolicy."""
    CLUSTER_QUEUE_NOT_FOUND = "ClusterQueueNotFound"
    """Its LocalQueue names a ClusterQueue that does not exist."""
    CLUSTER_QUEUE_STOPPED = "ClusterQueueStopped"
    """Its ClusterQueue has a stopPolicy."""
    CLUSTER_QUEUE_INACTIVE = "ClusterQueueInactive"
    """Its ClusterQueue does not work; the queue's condition Active says why."""
    QUOTA_INACTIVE = "QuotaInactive"
    """The elastic quota of its namespace is not in force; the quota's condition Active says why."""
    NAMESPACE_NOT_SELECTED = "NamespaceNotSelected"
    """Its ClusterQueue does not select its namespace."""
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    """Its namespace is being deleted."""
    RESOURCE_CLAIMS = "ResourceClaims"
    """Its pods use resource claims, which no quota counts."""
    MANUAL_SELECTOR = "ManualSelector"
    """Its Job has spec.manualSelector: pods that are taken from it would not be counted."""
    INVALID_REQUESTS = "InvalidRequests"
    """One of its requests can't be counted."""
    INVALID_ANNOTATION = "InvalidAnnotation"
    """An annotation of its object can't be read; the message names it, and why."""
    MAX_RUNTIME_EXCEEDED = "MaxRuntimeExceeded"
    """It has held quota for as long as it may now: its maximum was made shorter while it waited."""
    PRIORITY_CLASS_NOT_FOUND = "PriorityClassNotFound"
    """It names a PriorityClass that does not exist."""
    PRIORITY_CLASS_NOT_ALLOWED = "PriorityClassNotAllowed"
    """Its LocalQueue or ClusterQueue does not take its PriorityClass."""
    PRIORITY_MISMATCH = "PriorityMismatch"
    """It was made by hand with another priority than its PriorityClass has."""
    INACTIVE = "Inactive"
    """Its spec.active is false, or its Job is being deleted."""
    NOT_STARTED = "NotStarted"
    """The API server refused its Job's start, or its operator made other pods; it is tried again."""
    KIND_INACTIVE = "KindInactive"
    """No JobKind that works describes the kind of its object, or the API server does not serve it now."""
    PARKED = "Parked"
    """The large Workloads of its namespace fill their part of the controller's memory."""
    OUTDATED = "Outdated"
    """Its Job has changed since what it asks for was written."""
    JOB_STILL_RUNNING = "JobStillRunning"
    """Pods of an earlier start of its Job still run."""
    PODS_NOT_READY = "PodsNotReady"
    """Its pods were not all ready in time: it is tried again at the time that the message names."""
    GAVE_UP = "GaveUp"
    """Its pods were not all ready in time too often: its spec.active was set to false."""
    POD_GROUP_INCOMPLETE = "PodGroupIncomplete"
    """Not all pods of its group are there."""
    POD_GROUP_SIZES_DIFFER = "PodGroupSizesDiffer"
    """Pods of its group name different sizes of the group. An event on a pod: the others run already."""
    NO_PLACE_IN_GROUP = "NoPlaceInGroup"
    """Its group was admitted without a pod of its shape (event on the pod only)."""
    WORKLOAD_TAKEN = "WorkloadTaken"
    """Another object has the name of its Workload (event on the Job only)."""


class EvictedReason(StrEnum):
    """Why a Workload had to stop: reasons of `Evicted=True`."""

    DEACTIVATED = "Deactivated"
    """Its spec.active was set to false."""
    CLUSTER_QUEUE_STOPPED = "ClusterQueueStopped"
    """Its ClusterQueue got the stopPolicy HoldAndDrain."""
    LOCAL_QUEUE_STOPPED = "LocalQueueStopped"
    """Its LocalQueue got the stopPolicy HoldAndDrain."""
    JOB_CHANGED = "JobChanged"
    """Its Job asks for more, or for something else, than was admitted, or never got the pods that were."""
    NOT_STARTED = "NotStarted"
    """The API server refused its Job's start, or its operator made other pods than were admitted."""
    FLAVOR_NOT_FOUND = "FlavorNotFound"
    """A flavor that it was admitted to went before it started."""
    PREEMPTED = "Preempted"
    """Another Workload needed its quota; the message names it if it is of the same namespace."""
    CAPACITY_SHRUNK = "CapacityShrunk"
    """Nodes went, and less was left than was in use."""
    MAX_RUNTIME_EXCEEDED = "MaxRuntimeExceeded"
    """It has held quota for as long as it may: the message names the maximum."""
    PODS_NOT_READY = "PodsNotReady"
    """Its pods were not all ready in time; the message says why they are not."""


class PlacementReason(StrEnum):
    """Why a Job that names no queue still has none: reasons of events on it."""

    NOT_PLACED = "NotPlaced"
    """No rule of the PlacementPolicy leads to a queue; the message says what each one lacks."""
    SUBMIT_DENIED = "SubmitDenied"
    """A rule has found a queue to which its maker may not submit."""
    PLACEMENT_ENDED = "PlacementEnded"
    """No PlacementPolicy selects its namespace any more; it stays suspended until its user does something."""


class EventReason(StrEnum):
    """What events tell beside the reasons of waiting, of eviction and of placement."""

    ADMITTED = "Admitted"
    """It holds its quota, and its Job starts."""
    EVICTION_PENDING = "EvictionPending"
    """It will have to stop at the time that the message names."""
    NO_SCHEDULER = "NoScheduler"
    """No scheduler has said anything of its pods: there may be none of the name in its template."""
    READY_TIMEOUT = "ReadyTimeout"
    """Its annotation admitter.dev/ready-timeout does not count as it is written; the message says why."""
    EXCESS = "Excess"
    """Its group has as many pods as its size without it: it is deleted."""
    RESIZED = "Resized"
    """It runs with more pods than it was admitted with, since quota is idle, or with fewer again."""
    STOPPED = "Stopped"
    """It was running without admission, as its Workload had been deleted, and is deleted."""
    SUSPENDED = "Suspended"
    """It was set running without admission, and has been suspended again."""
    UNREADABLE = "Unreadable"
    """A field of the object can't be read; what was known of it before stays in force."""
    WRITE_REFUSED = "WriteRefused"
    """For some seconds the API server has refused a write that the Job needs; the message has its answer."""


class PendingReason(StrEnum):
    """Why a Workload will have to stop, or need not any more: reasons of `EvictionPending`."""

    PREEMPTED = "Preempted"
    """Another Workload needs its quota."""
    OVER = "Over"
    """No preemptor waits for its quota any more, or the Workload has been evicted, or is finished."""


class FinishedReason(StrEnum):
    """How a Workload ended: reasons of `Finished=True`."""

    JOB_SUCCEEDED = "JobSucceeded"
    """Its Job is Complete."""
    JOB_FAILED = "JobFailed"
    """Its Job is Failed."""
    EVICTED = "Evicted"
    """Its pods have been evicted, and none were made in their place."""
    MAX_RUNTIME_EXCEEDED = "MaxRuntimeExceeded"
    """It has held quota for as long as it may. Its Job stays suspended."""


class ActiveReason(StrEnum):
    """Whether a queue, elastic quota, flavor or JobKind works: reasons of `Active`."""

    READY = "Ready"
    """It works."""
    INVALID_SPEC = "InvalidSpec"
    """Its spec breaks a rule that the API server did not check; the message names the field."""
    FLAVOR_NOT_FOUND = "FlavorNotFound"
    """The ClusterQueue names a ResourceFlavor that does not exist."""
    FLAVOR_INVALID = "FlavorInvalid"
    """The ClusterQueue names a ResourceFlavor with an invalid spec."""
    CLUSTER_QUEUE_NOT_FOUND = "ClusterQueueNotFound"
    """The LocalQueue names a ClusterQueue that does not exist."""
    CLUSTER_QUEUE_INACTIVE = "ClusterQueueInactive"
    """The LocalQueue's ClusterQueue does not work, or is stopped."""
    COHORT_CYCLE = "CohortCycle"
    """The Cohort is its own ancestor; it stands alone until that is corrected."""
    CONFLICT = "Conflict"
    """An older elastic quota governs one of its namespaces; or an older JobKind describes its resource,
    or a kind of the same name."""
    DEFINITION_NOT_FOUND = "DefinitionNotFound"
    """The JobKind describes a resource that the cluster does not have, or not in that version."""
    NOT_READ = "NotRead"
    """The controller can't read what the JobKind describes; the message has the API server's answer."""
    NO_POLICY = "NoPolicy"
    """The JobKind works without policies: what is created running is stopped a moment later, and may grow."""
    NAMESPACE_NOT_FOUND = "NamespaceNotFound"
    """It works, but names a namespace that does not exist."""
    NAMESPACE_NOT_MANAGED = "NamespaceNotManaged"
    """It works, but for its manageAllPods: that does so only in a managed namespace."""
    QUEUE_NAME_TAKEN = "QueueNameTaken"
    """A LocalQueue has the name elastic-quota in a namespace that a quota governs: the quota counts. As an
    event on a Namespace that brings its quota: a queue that the controller did not make has its name."""
    LOCAL_QUEUE_TAKEN = "LocalQueueTaken"
    """It works, but a LocalQueue that its spec.localQueues asks for leads elsewhere; the message names it."""
    EXCEEDS_PARENT = "ExceedsParent"
    """A min or max is more than the max of a Cohort above, both are named; it works by the lesser one."""
    INVALID_ANNOTATION = "InvalidAnnotation"
    """An annotation of the namespace that it was made for can't be read; what was before stays in force."""
    PARENT_NOT_FOUND = "ParentNotFound"
    """The namespace that it was made for names a Cohort that does not exist; what was before stays."""
    STOPPED = "Stopped"
    """It has a stopPolicy."""
    UNREADABLE = "Unreadable"
    """A field of it can't be read: it admits nothing new, and what was known of it before counts."""


NORMAL_EVENTS: Final = frozenset[str](
    {
        *(EventReason.ADMITTED, ActiveReason.READY, ActiveReason.STOPPED, EvictedReason.DEACTIVATED),
        *(WaitingReason.INSUFFICIENT_QUOTA, WaitingReason.BEHIND_HEAD, WaitingReason.PREEMPTING),
        *(WaitingReason.PREEMPTION_BACKED_OFF, WaitingReason.JOB_STILL_RUNNING, WaitingReason.PARKED),
        *(WaitingReason.INACTIVE, WaitingReason.NAMESPACE_TERMINATING, WaitingReason.EVICTIONS_LIMITED),
        *(WaitingReason.POD_GROUP_INCOMPLETE, WaitingReason.OUTDATED),
        *(WaitingReason.QUEUE_STOPPED, WaitingReason.CLUSTER_QUEUE_STOPPED),
    }
)
"""Reasons of events of type `Normal`: what is meant so, or passes by itself. Others are of type `Warning`."""

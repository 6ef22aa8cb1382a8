"""The names that Admitter shares with its users: group, labels, annotations, identities."""

GROUP = "admitter.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

NAMESPACE = "admitter-system"
SERVICE_ACCOUNT = "admitter-controller"
CONTROLLER_USER = f"system:serviceaccount:{NAMESPACE}:{SERVICE_ACCOUNT}"
"""The user name under which the controller runs everywhere; the policies let it pass."""

LEASE = "admitter-controller"
"""In the namespace of the controller: the Lease of the process that decides, or decides about shard 0.

Those of other shards have `-shard-` and a number behind it.
"""

SHARD_LABEL = f"{GROUP}/shard"
"""On such a Lease: the number of its shard."""

SHARDS_ANNOTATION = f"{GROUP}/shards"
"""On a Lease of the controllers: of how many shards its holder knows."""

SEEN_ANNOTATION = f"{GROUP}/seen"
"""On the Lease of a shard: up to which changes of the trees its holder decides by them alone."""

NEEDED_ANNOTATION = f"{GROUP}/needed"
"""On the Lease of a shard: up to which changes all other holders have to, before its holder goes on."""

MEMBER_LABEL = f"{GROUP}/member"
"""On the Lease by which a process says that it can take shards."""

FIELD_MANAGER = "admitter"

QUEUE_LABEL = f"{GROUP}/queue-name"
"""On a Job, or a pod that is queued by itself: the LocalQueue it is submitted to."""

QUEUE_ALIAS_LABEL = "kueue.x-k8s.io/queue-name"
"""Another name of the same label, where the namespace has such a LocalQueue."""

PRIORITY_CLASS_LABEL = f"{GROUP}/priority-class"
"""On a Job, or anything else that is queued: its WorkloadPriorityClass."""

PRIORITY_CLASS_ALIAS_LABEL = "kueue.x-k8s.io/priority-class"
"""Another name of the same label."""

POD_GATE = f"{GROUP}/admission"
"""The scheduling gate of a queued pod: only the admission takes it away."""

POD_GROUP_LABEL = f"{GROUP}/pod-group"
"""On a queued pod: the group that it is admitted with. On a Workload: the group that it is for."""

POD_GROUP_SIZE_ANNOTATION = f"{GROUP}/pod-group-size"
"""On a pod of a group: how many pods the group has."""

POD_GROUP_OWNER_ANNOTATION = f"{GROUP}/pod-group-owner"
"""On a pod of a group, by the API server alone: what the group belongs to instead of the pod's controller."""

RETRIABLE_ANNOTATION = f"{GROUP}/retriable-in-group"
"""On a pod of a group, with the value false: no other takes its place if it fails. On its Workload too."""

SERVING_ANNOTATION = f"{GROUP}/pod-group-serving"
"""On a pod of a group, with the value true: the group serves, so it never comes to an end."""

FAST_ADMISSION_ANNOTATION = f"{GROUP}/pod-group-fast-admission"
"""On a pod of a group, with the value true: the group is admitted before all of its pods are there."""

BEYOND_GROUP_ANNOTATION = f"{GROUP}/beyond-group"
"""On a pod of a group that serves, by the controller alone: for want of a place it is queued by itself."""

KIND_ANNOTATION = f"{GROUP}/kind"
"""On a Workload: the kind of what it was made for, as `kubectl get workloads` shows it."""

OBJECT_ANNOTATION = f"{GROUP}/object"
"""On a Workload: the name of that."""

JOB_LABEL = f"{GROUP}/job-uid"
"""On a Workload: the UID of the Job that it was made for, also once its ownerReference is gone."""

WORKLOAD_LABEL = f"{GROUP}/workload"
"""On admitted pods: the Workload that holds their quota."""

CLUSTER_QUEUE_LABEL = f"{GROUP}/cluster-queue"
"""On an admitted Job's pods: the ClusterQueue that admitted them."""

WORKLOAD_UID_ANNOTATION = f"{GROUP}/workload-uid"
FLAVORS_ANNOTATION = f"{GROUP}/flavors"
"""On an admitted Job's pods: resource to flavor, as JSON; what they use if their Workload is gone."""

COUNTED_ANNOTATION = f"{GROUP}/counted"
"""On an admitted Job's pods, as JSON: memory of their GPUs in GB, and the pool that they count in."""

INJECTED_ANNOTATION = f"{GROUP}/injected"
"""On a Job: what the last admission put into its pod template, as JSON, so that the next can replace it.

On a queued pod: what its admission put into the pod."""

EPOCH_ANNOTATION = f"{GROUP}/epoch"
"""On the controller's ServiceAccount: which of the controllers that there were may admit.

Those of other shards than 0 have a `-` and the number behind it.
"""

RETURNED_ANNOTATION = f"{GROUP}/returned"
"""On a Job that has given quota back, or a Workload after an admission got no answer: its earlier version.
Writes that are still on their way name an earlier one, and come too late."""

SIMULATED_RUNTIME_ANNOTATION = f"{GROUP}/simulated-runtime"
"""On a pod of a simulated node: after how many seconds it completes."""

EXPECTED_RUNTIME_ANNOTATION = f"{GROUP}/expected-runtime"
"""On a Job: for how long its user expects it to run once it is admitted; estimates go by it."""

MAX_RUNTIME_ANNOTATION = f"{GROUP}/max-runtime"
"""On anything that is queued: for how long it may hold quota, within the maximum of its queue."""
READY_TIMEOUT_ANNOTATION = f"{GROUP}/ready-timeout"
"""On a Job, or a queued pod: how long its pods may take to be ready, at most as long as its queue allows."""
MIN_PARALLELISM_ANNOTATION = f"{GROUP}/min-parallelism"
"""On a Job: with how many pods it may be started, if all of them do not fit."""

MAX_PARALLELISM_ANNOTATION = f"{GROUP}/max-parallelism"
"""On a Job: how many pods it can use, if quota is idle."""

PARALLELISM_ANNOTATION = f"{GROUP}/original-parallelism"
"""On a Job that was started with fewer pods, or has grown: its own parallelism, put back by an eviction."""
GRANTED_PARALLELISM_ANNOTATION = f"{GROUP}/granted-parallelism"
"""On a Job that has grown: the parallelism that its Workload was granted when it was patched last."""
BOUNDS_ANNOTATION = f"{GROUP}/original-bounds"
"""On an object of a described kind that may grow: as JSON the bounds that its user wrote."""
CHECKPOINT_ANNOTATION = f"{GROUP}/checkpointed-at"
"""On a Job: when it has last saved its work, in RFC 3339; an eviction loses what it has done after that."""

SIMULATED_AT_ANNOTATION = f"{GROUP}/simulated-at"
"""On any object of a simulation: how long after the start it is applied."""

SIMULATED_READY_AFTER_ANNOTATION = f"{GROUP}/simulated-ready-after"
"""On a pod of a simulated node, or a Job of a simulation: after how many seconds it is ready."""

SIMULATED_UNTIL_ANNOTATION = f"{GROUP}/simulated-until"
"""On any object of a simulation: how long after the start it is deleted."""

GPU_MEMORY = f"{GROUP}/gpu-memory"
"""A resource: memory of GPUs, in whole GB."""

GPU_MEMORY_ALIASES = ("nos.nebuly.com/gpu-memory",)
"""Other names of the same resource."""

PODS = "pods"
"""A resource: how many pods there are. Each pod is one, and none requests it."""

CAPACITY_LABEL = f"{GROUP}/capacity"
"""On a pod of an elastic quota: whether it is in quota or over it."""

CAPACITY_ALIAS_LABEL = "nos.nebuly.com/capacity"
"""Another name of the same label, written too."""

ELASTIC_QUOTA_QUEUE = "elastic-quota"
"""As a queue name: the elastic quota of the namespace. Also the cohort of all elastic quotas."""

EVICTION_TIME_ANNOTATION = f"{GROUP}/eviction-time"
"""On a Job and its pods: when they will be evicted."""

CONTROLLER_NAME = "admitter-controller"
"""The component that events name as their source."""

SUSPEND_POLICY = "admitter-suspend-queued-jobs"
"""The MutatingAdmissionPolicy that keeps queued Jobs suspended until they are admitted."""

MAKERS_POLICY = "admitter-job-makers"
"""The MutatingAdmissionPolicy that records on Jobs and CronJobs the user that made them."""

PLACEMENT_POLICY = "admitter-place-jobs"
"""The MutatingAdmissionPolicy that suspends and marks the Jobs of a PlacementPolicy; also its binding."""

ROOT_COHORT = "root"
"""The Cohort above the queues of namespaces; before the name of a queue, `root.` says nothing."""

NAMESPACE_QUOTA_ANNOTATIONS = (f"{GROUP}/namespace.quota", "yunikorn.apache.org/namespace.quota")
"""On a Namespace: the most that it may use, as JSON of quantities by resource; the first one counts."""

DEPRECATED_QUOTA_ANNOTATIONS = {
    "yunikorn.apache.org/namespace.max.cpu": "cpu",
    "yunikorn.apache.org/namespace.max.memory": "memory",
}
"""On a Namespace: the same for one resource each, if none of the others is there."""

PARENT_QUEUE_ANNOTATIONS = (f"{GROUP}/parent-queue", "yunikorn.apache.org/parentqueue")
"""On a Namespace: the Cohort that its queue belongs to."""

GENERATED_LABEL = f"{GROUP}/generated-for"
"""On a queue or Cohort that the controller has made: the namespace that it is for; empty if for any."""

GENERATED_BY_LABEL = f"{GROUP}/generated-by"
"""On the same: what asked for it, `annotations` of the namespace, `placement` of a Job, `person`, or
`cluster-queue`: by its spec.localQueues.

`person` is placement too, but of a queue for a user or a group."""

NAMESPACE_WEIGHT_RESOURCES = (f"{GROUP}/namespace.weight", "volcano.sh/namespace.weight")
"""In a ResourceQuota's `hard`: the weight of its namespace where namespaces share a queue."""

USER_ANNOTATION = f"{GROUP}/user"
"""On a Job or a queued pod: the user that made it, as the API server said."""

USER_UID_ANNOTATION = f"{GROUP}/user-uid"
"""On a queued pod: the UID of the user that made it, if the API server said one."""

GROUPS_ANNOTATION = f"{GROUP}/groups"
"""On a Job: the groups of the user that made it, as JSON."""

PLACEMENT_ANNOTATION = f"{GROUP}/placement"
"""On a Job: the PlacementPolicy for which it was suspended when it was made."""

DEFAULT_QUEUE_LABEL = f"{GROUP}/default-queue"
"""On a Namespace: the LocalQueue of what names none there."""

BY_DEFAULT_ANNOTATION = f"{GROUP}/queue-by-default"
"""On a Job or a queued pod: the queue that it got so, which no user has named."""

PLACED_ANNOTATION = f"{GROUP}/placed-in"
"""On a Job: the LocalQueue that a rule has found for it; empty if it waited for one when its policy ended."""

USER_INFO_ALIAS_ANNOTATION = "yunikorn.apache.org/user.info"
"""On a Job or its pods, as JSON: its user and groups; read where no annotation of Admitter names them."""

USERNAME_ALIAS_LABEL = "yunikorn.apache.org/username"
"""On a Job or its pods: its user; read where nothing else names one."""

SUBMIT_VERB = "submit"
"""The RBAC verb on localqueues that the user that makes a Job needs for the queue that it names."""

OPERATE_VERB = "operate"
"""The RBAC verb on jobkinds, by kind and group such as JobSet.jobset.x-k8s.io, that makes an account the
operator of the objects of that kind: it makes and changes what belongs to them."""

JOB_KIND_LABEL = f"{GROUP}/job-kind"
"""On a role or a policy that was installed for a JobKind: the name of that."""

READER_LABEL = f"{GROUP}/aggregate-to-reader"
"""On a ClusterRole, with the value true: the API server adds its rules to those of admitter-reader."""

SUSPEND_IGNORED_ANNOTATION = f"{GROUP}/suspend-ignored"
"""On a Job or an object of a described kind: the version at which a user could not start or stop it."""

KIND_POLICY = "admitter-kind-"
"""How the policies and roles of a JobKind are called, before its name."""

MANAGED_LABEL = f"{GROUP}/managed"
"""On a Namespace, with the value true: nothing runs there that was not admitted."""

ANY_NODE = "any_node"
"""The flavor of quota that names none; no ResourceFlavor can have an underscore in its name."""

"""What becomes of pods that are evicted: Kubernetes has no way to stop a pod, so an eviction deletes it."""

from dataclasses import replace

from admitter.cache.views import JobView
from admitter.cache.world import World


def wait_again(world: World, job: JobView) -> None:
    """The pods of an evicted group are made anew: they wait for their admission."""
    for pod in world.members_of(job):
        if pod.running:
            world.queued_pods.take_again(replace(pod, gated=True, deleting=False, phase="Pending"))


def ends_evicted(world: World, job: JobView) -> bool:
    """Whether a pod or a group is over with its eviction, since no controller makes it anew."""
    group = world.pod_groups.get(job.uid)
    return not group.retriable if group is not None else job.owner is None

"""What is added up of the pods of a group."""

from admitter.cache.queued_pods import parse_queued_pod
from admitter.cache.world import World
from tests.abuse.samples import QUEUED, stored


def test_a_group_of_which_all_pods_are_gone_still_answers_what_is_under_way() -> None:
    world = World()
    pod = parse_queued_pod(stored(QUEUED))
    world.queued_pods.apply(pod)
    group = world.pod_groups.get(pod.group_uid)
    assert group is not None
    world.queued_pods.delete(pod.key, pod.uid)
    assert world.pod_groups.get(pod.group_uid) is None
    assert (group.size, group.oldest, group.members) == (1, pod, {})

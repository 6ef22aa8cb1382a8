"""Levels of the places of nodes, by labels as clouds and clusters write them."""

import pytest

from admitter.insight.topology import Level, levels

Labels = dict[str, str]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([], [], id="no node"),
        pytest.param([{}, {"kind": "a"}], [], id="no place"),
        pytest.param([{"topology.kubernetes.io/zone": "a"}] * 2, [], id="one place divides nothing"),
        pytest.param(
            [{"example.com/rack": r, "topology.kubernetes.io/zone": z} for r, z in (("1", "a"), ("2", "b"))],
            ["topology.kubernetes.io/zone", "example.com/rack"],
            id="the widest first",
        ),
        pytest.param(
            [{"network.topology.nvidia.com/leaf": n, "network.topology.nvidia.com/spine": n} for n in "ab"],
            ["network.topology.nvidia.com/spine", "network.topology.nvidia.com/leaf"],
            id="switches",
        ),
        pytest.param(
            [
                {"cloud.google.com/gce-topology-block": n, "cloud.google.com/gce-topology-subblock": n}
                for n in "ab"
            ],
            ["cloud.google.com/gce-topology-block", "cloud.google.com/gce-topology-subblock"],
            id="a block is no subblock",
        ),
        pytest.param(
            [{"topology.ebs.csi.aws.com/zone": n, "topology.kubernetes.io/zone": n} for n in "ab"],
            ["topology.kubernetes.io/zone"],
            id="Kubernetes' own counts",
        ),
        pytest.param(
            [{"a.com/rack": "1"}, {"b.com/rack": "1"}, {"b.com/rack": "2"}],
            ["b.com/rack"],
            id="else what most nodes have",
        ),
        pytest.param(
            [{"failure-domain.beta.kubernetes.io/zone": n} for n in "ab"], [], id="a label that is retired"
        ),
        pytest.param([{"example.com/blockade": n} for n in "ab"], [], id="another word"),
    ],
)
def test_levels_are_told_by_the_last_word_of_a_label(nodes: list[Labels], expected: list[str]) -> None:
    assert [level.label for level in levels(nodes)] == expected


def test_a_node_that_does_not_say_where_it_is_has_no_place() -> None:
    level = Level("zone", "topology.kubernetes.io/zone")
    assert (level.place({"topology.kubernetes.io/zone": "a"}), level.place({})) == ("a", "")

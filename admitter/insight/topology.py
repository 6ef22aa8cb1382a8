"""Where nodes are: levels such as zone, block and rack, as the labels of the nodes tell them.

Clouds and clusters name these labels differently (`topology.kubernetes.io/zone`,
`cloud.google.com/gce-topology-block`, `network.topology.nvidia.com/leaf`), and all end with the word for the
level.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

WORDS: Final = ("region", "datacenter", "zone", "spine", "block", "subblock", "leaf", "rack")
"""The last words of labels that tell where a node is, from the widest level to the narrowest."""
LONGEST_LABEL: Final = 317
"""Characters of a label's key: a DNS name, a slash and a name."""
_KUBERNETES: Final = "topology.kubernetes.io/"
_RETIRED: Final = ("failure-domain.beta.kubernetes.io/", "beta.kubernetes.io/")
_PARTS: Final = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Level:
    """One level."""

    name: str  # one of WORDS
    label: str  # of the nodes; its values are the places

    def place(self, labels: Mapping[str, str]) -> str:
        """Where a node with these labels is; empty if it does not say."""
        return labels.get(self.label, "")


def levels(nodes: Iterable[Mapping[str, str]]) -> list[Level]:
    """The levels that divide nodes, given by their labels, from the widest to the narrowest.

    Of several labels for one level Kubernetes' own counts, then the one that most nodes have.
    """
    found: dict[str, dict[str, set[str]]] = {}
    having: dict[str, int] = {}
    words: dict[str, str] = {}
    for labels in nodes:
        for key, value in labels.items():
            word = words.get(key)
            if word is None:
                word = words[key] = _word(key)
            if word:
                found.setdefault(word, {}).setdefault(key, set()).add(value)
                having[key] = having.get(key, 0) + 1
    made = []
    for word in (word for word in WORDS if word in found):
        key = min(found[word], key=lambda key: (not key.startswith(_KUBERNETES), -having[key], key))
        if len(found[word][key]) > 1:
            made.append(Level(word, key))
    return made


def _word(label: str) -> str:
    """The level that a label tells; empty if it tells none."""
    last = _PARTS.split(label[-LONGEST_LABEL:].lower())[-1]
    return last if last in WORDS and not label.startswith(_RETIRED) else ""

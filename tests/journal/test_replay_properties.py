"""Whatever happens to an engine, its journal tells another one the same, and it decides the same.

The random events are those of the engine's own properties. A new file is begun at every third cycle, which is
replayed by itself.
"""

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from admitter.engine.cycle import Engine
from admitter.journal.calls import Call
from admitter.journal.files import Journal, files
from admitter.journal.recorder import Recorder
from admitter.journal.replay import replay
from tests.engine.test_definition_properties import Definitions
from tests.engine.test_elastic_properties import Quotas
from tests.engine.test_tree_properties import Tree
from tests.scale import histories

pytestmark = pytest.mark.long

FEW = histories(15)


class OftenNew(Journal):
    """Takes a file for full after three cycles, once the engine has settled."""

    cycles = 0
    filled = 0

    def decided(self, state: Callable[[], Iterable[Call]] | None) -> None:
        self.cycles += 1
        if self.cycles >= 3 and state is not None:
            self.cycles = self._left = 0
            self.filled += 1
        super().decided(state)


class Recording:
    """Gives a machine an engine that writes down what it is told, and replays that in the end."""

    def make(self) -> Engine:
        self.folder = tempfile.TemporaryDirectory()
        self.journal = OftenNew(Path(self.folder.name), "test", 1, 1000)
        made = Engine(observer=Recorder(self.journal))
        made.resume(lambda _: True)
        return made

    def teardown(self) -> None:
        self.journal.close()
        with self.folder as folder:
            written = list(files(Path(folder)))
            assert len(written) == 1 + self.journal.filled, "a new one at every third cycle"
            for path in written:
                assert replay(path).difference is None


class RecordedTree(Recording, Tree):
    """Cohorts, borrowing, preemption, namespaces."""


class RecordedQuotas(Recording, Quotas):
    """Elastic quotas, with time to end."""


class RecordedDefinitions(Recording, Definitions):
    """Definitions that come and go."""


TestTree, TestQuotas, TestDefinitions = (
    machine.TestCase for machine in (RecordedTree, RecordedQuotas, RecordedDefinitions)
)
TestTree.settings = TestQuotas.settings = TestDefinitions.settings = FEW

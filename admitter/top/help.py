"""All keys, and what the marks mean."""

from collections.abc import Iterable
from typing import Final

from textual.containers import VerticalScroll
from textual.widget import Widget

from admitter.top.view import TextView, TopView

TEXT: Final = """\
████│▒▒··]  █ own, ▒ borrowed, · not used; │ at min, ] at max
LOAN        +2: 2 are borrowed; -2: 2 of its own are lent to others
WAIT, ADM   how many wait, how many are admitted; ADM/M: in the last minute
!           a problem: below the table when the line is the current one

On all lists
  ↑ ↓ k j   one line           PgUp PgDn  one page
  Home g    first line         End G      last line
  /         filter             Esc        no filter; back
Queues
  Enter     Workloads of the queue, or of all below the Cohort
  r R       next, previous resource
  n u w a   order by name, part in use, waiting, admitted a minute
  ← → h l   fold, unfold       - +        fold, unfold all
Workloads
  Enter     explanation
Explanation
  r         ask again
?           this page          q          quit"""


class HelpView(TopView):
    """All keys."""

    keys = "q quit  Esc back  ↑↓ scroll"

    def body(self) -> Iterable[Widget]:
        text = TextView("text")
        leader = self.state.leader()
        text.say(f"{TEXT}\n\n{leader}" if leader else TEXT)
        return (VerticalScroll(text),)

"""Limited places that all users of the page share: a user with many takes none from the others."""

from collections import OrderedDict
from typing import Final

_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


def party(user: str) -> str:
    """The party of a user: all service accounts of a namespace are one, since they are easily made."""
    if user.startswith(_SERVICE_ACCOUNT):
        return "system:serviceaccounts:" + user.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
    return user


class PartyShares:
    """Places by party, in the order of their last use; the party with most places gives up one first."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self._most = most
        self._most_of_one = most_of_one
        self._of: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()
        self._party: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._party)

    def __contains__(self, name: str) -> bool:
        return name in self._party

    def take(self, name: str, user: str) -> str | None:
        """Take a place under a new name; returns the name that loses its own if there was no room.

        That is the idlest of its party, or of the party with most places.
        """
        owner = party(user)
        self._of.setdefault(owner, OrderedDict())
        self._party[name] = owner
        self.use(name)
        if len(self._of[owner]) > self._most_of_one:
            giver = owner
        elif len(self._party) > self._most:
            giver = max(self._of, key=lambda each: len(self._of[each]))
        else:
            return None
        lost = next(iter(self._of[giver]))
        self.leave(lost)
        return lost

    def use(self, name: str) -> None:
        owner = self._party[name]
        self._of.move_to_end(owner)
        self._of[owner][name] = None
        self._of[owner].move_to_end(name)

    def leave(self, name: str) -> None:
        """Give a place up; an unknown name is no error."""
        owner = self._party.pop(name, None)
        if owner is not None:
            del self._of[owner][name]
            if not self._of[owner]:
                del self._of[owner]

"""Room that all who look at the page share: one who takes much of it takes none from the others."""

from collections import OrderedDict
from typing import Final

_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


def party(user: str) -> str:
    """With whom a user shares room: a service account with all of its namespace, which are easily made."""
    if user.startswith(_SERVICE_ACCOUNT):
        return "system:serviceaccounts:" + user.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
    return user


class PartyShares:
    """Places by party, each in the order of its last use; the party that has most gives first."""

    def __init__(self, most: int, most_of_one: int) -> None:
        """Prepare.

        Args:
            most: so many places there are.
            most_of_one: so many one party may have.
        """
        self._most = most
        self._most_of_one = most_of_one
        self._of: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()
        self._party: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._party)

    def __contains__(self, name: str) -> bool:
        return name in self._party

    def take(self, name: str, user: str) -> str | None:
        """Take a place under a new name.

        Returns:
            The name that has lost its place for that: the one of its party that was used last longest ago, or
            of the party that has most, the idlest of these; None: there was room.
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
        """A place is used now."""
        owner = self._party[name]
        self._of.move_to_end(owner)
        self._of[owner][name] = None
        self._of[owner].move_to_end(name)

    def leave(self, name: str) -> None:
        """Give a place up; one that there is not is no error."""
        owner = self._party.pop(name, None)
        if owner is not None:
            del self._of[owner][name]
            if not self._of[owner]:
                del self._of[owner]

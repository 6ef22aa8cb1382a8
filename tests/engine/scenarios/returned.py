"""What a new engine is told of places that evictions have made."""

from admitter.engine import commands
from admitter.engine.cycle import Engine


def tell_what_was_returned(before: Engine, made: Engine) -> None:
    """Which places evictions have made, and for which queues and namespaces nothing is evicted now."""
    gained = before.returned.gained
    for uid in gained | made.returned.gained:
        made.apply(commands.GainReservation(uid) if uid in gained else commands.UseReservation(uid))
    for pair, back_off in before.returned.known:
        made.apply(commands.SetBackOff(*pair, back_off))

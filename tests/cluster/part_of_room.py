"""`admitter run` with a part of its room for large objects.

`python -m tests.cluster.part_of_room PART run ARGUMENTS...` divides that room by PART: a flood that fills it
is that much smaller.
"""

import sys

from admitter.cache import room
from admitter.cli import main

if __name__ == "__main__":
    part = int(sys.argv.pop(1))
    for name in ("ROOM_BYTES", "OF_ONE"):
        assert name in room.fits.__code__.co_names, "the room is kept by other names now"
        vars(room)[name] //= part
    main.main()

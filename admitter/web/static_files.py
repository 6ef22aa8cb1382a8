"""The files of the console that browsers load: read once, and compressed once."""

import gzip
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

STATIC: Final = Path(__file__).parent / "static"
KINDS: Final = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file."""

    content: bytes
    packed: bytes  # by gzip
    kind: str  # its media type
    tag: str  # names the content: another one has another tag


def static_files() -> dict[str, StaticFile]:
    """All files by the path of their URL; the page itself is `/`."""
    found = {}
    for path in sorted(STATIC.rglob("*")):
        if path.suffix in KINDS:
            content = path.read_bytes()
            tag = f'"{sha256(content).hexdigest()[:20]}"'
            name = "/" if path.name == "index.html" else f"/{path.relative_to(STATIC).as_posix()}"
            found[name] = StaticFile(content, gzip.compress(content, mtime=0), KINDS[path.suffix], tag)
    return found

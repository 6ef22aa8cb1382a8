"""`python -m tools.docs` writes the generated parts of docs/reference; `--check` compares."""

import sys

from tools.docs.pages import main

sys.exit(main(sys.argv[1:]))

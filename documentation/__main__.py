"""`python -m documentation` writes the generated parts of docs/reference; `--check` compares."""

import sys

from documentation.pages import main

sys.exit(main(sys.argv[1:]))

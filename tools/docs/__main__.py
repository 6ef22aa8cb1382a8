"""`python -m tools.docs` writes the generated parts of docs/reference; `--check` compares."""

import sys

from admitter.made_files import write_or_check
from tools.docs.pages import contents

sys.exit(write_or_check(sys.argv[1:], contents()))

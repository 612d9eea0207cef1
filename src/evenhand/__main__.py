"""`python -m evenhand` is the command line."""

import sys

from evenhand.cli import main

sys.exit(main())

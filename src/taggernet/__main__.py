"""python -m taggernet: the command line, also under torchrun."""

import sys

from taggernet.cli import main

sys.exit(main())

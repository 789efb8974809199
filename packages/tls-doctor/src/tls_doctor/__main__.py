"""Run the command line: python -m tls_doctor."""

import sys

from tls_doctor import start

sys.exit(start())

"""Test files are imported by path; this lets them import the helpers that lie beside them."""

import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

# Thousands of runs full of faults would bury a failure under the worker's warnings about them.
logging.getLogger("peeklock.impl").setLevel(logging.CRITICAL)

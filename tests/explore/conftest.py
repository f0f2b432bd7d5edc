"""Test files are imported by path; this lets them import the helpers here, and the browser of the tales' pages."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "conform")]

"""Test files are imported by path; this lets them import helpers: those beside them and those of conform/."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "conform")]

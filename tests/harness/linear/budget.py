"""How much is looked at and kept, before the search of a history gives up."""

MOST_STEPS = 500
"""The worlds that are looked at for one operation; after so many the search goes on with what it has found."""
MOST_WORLDS = 16
"""The worlds that are kept; of more, those are left out in which the most calls without an answer took effect."""
MORE = 10
"""How many times as much is looked at where nothing is found else."""
UNITED = 50
"""So many worlds at most are held against each other, to make one of two."""
MOST_EFFORT = 4_000_000
"""The bounds that are copied at most for a history, which takes some seconds; then the search gives up."""
MOST_PENDING = 12
"""Operations that are over and may have taken effect, of which it is left open whether they did."""

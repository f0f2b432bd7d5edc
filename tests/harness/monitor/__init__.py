"""The monitor: the states of the specification that explain what was observed, and the promises that a run broke."""

"""What readers of the law share: evaluation, a store with a clock, and the words for a step or a state."""

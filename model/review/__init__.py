"""What a reviewer asks: how two policies or revisions differ, and what a policy amounts to."""

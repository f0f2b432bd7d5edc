"""What the commands share: options, errors, progress and the ways to show a trace."""

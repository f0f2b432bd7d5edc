"""``check_worker``: a worker on a scripted store and clock, watched by the monitor."""

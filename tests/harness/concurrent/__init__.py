"""``check_store_concurrently`` and ``check_store_by_processes``: many clients at once."""

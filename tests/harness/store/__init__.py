"""``check_store``: runs drawn from the specification, taken to a store, and shrunk when one fails."""

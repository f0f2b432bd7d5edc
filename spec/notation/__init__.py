"""How the protocol is written: terms, and actions made of them."""

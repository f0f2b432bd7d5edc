"""The promises: what every state and every step of the protocol must keep."""

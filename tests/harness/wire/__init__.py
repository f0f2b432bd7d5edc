"""The wire format: stores and workers in any language, over JSON lines."""

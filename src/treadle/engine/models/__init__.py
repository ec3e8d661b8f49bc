"""Model families: plain functions over flattened tokens, which keep no state of their own."""

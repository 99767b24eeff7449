"""Pure functions: arrays in, one frozen result with its certificate out."""

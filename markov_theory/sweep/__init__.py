"""Measure the sample complexity N* along an axis, stop, resume, and set it against the theory."""

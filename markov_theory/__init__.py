"""Simulate, estimate and verify the Markov-matrix theory of learning new tokens from old ones."""

"""What is claimed, exact oracles, and verdicts."""

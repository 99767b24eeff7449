"""One self-contained HTML page from the results of sweeps, verifications and plans."""

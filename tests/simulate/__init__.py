"""The simulator at work: random stories of `reconciler.testing.simulation` played with the real `Fleet`."""

"""What the agent that follows a branch does next, decided from values alone: see `decide`."""

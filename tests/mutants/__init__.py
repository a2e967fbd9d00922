"""Is every safety net really there? Each mutant breaks the product in one named way; the simulator has to see it."""

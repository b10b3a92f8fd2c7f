"""The plan document in memory: the plan, its graph, and every setting under its path."""

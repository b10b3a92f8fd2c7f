"""The kinds of operators of a plan, a file each: what an operator says, and everything that a plan must know of it."""

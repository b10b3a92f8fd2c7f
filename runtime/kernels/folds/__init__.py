"""How the values of a group become one: lists one behind the other, and moments of numbers."""

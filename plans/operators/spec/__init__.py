"""What kinds of operators are described with: their kind, their fields, columns, states and outputs.

Knows no kind; those stand beside it, a file each.
"""

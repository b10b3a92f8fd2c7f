"""The building blocks of a kind of operators: its specification, fields, columns, states and outputs.

Knows no kind; the kinds are in the parent folder, one file each.
"""

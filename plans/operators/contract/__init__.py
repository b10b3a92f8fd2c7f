"""The contract between operators and the code that handles all of them: abstract classes, columns and tables.

Knows no single operator; operators are in the parent folder, one file each.
"""

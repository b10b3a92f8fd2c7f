"""The functions on plans for Python programs, named after the commands; their results print the commands' output.

``import hintplan`` offers them, together with functions that compile and run plans.
"""

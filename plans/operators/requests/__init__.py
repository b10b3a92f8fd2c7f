"""Operators that send a request to another system for every row, to look up a table or to call a function.

They always have their groups of settings, and the values of some settings depend on other settings.
"""

"""Operators that call another system for every row, to look up a table or to call a function, with their settings.

They always have their groups of settings, and the values of some settings depend on other settings.
"""

"""The declarations of a plan that precede its operators: types, tables, functions, and their classes."""

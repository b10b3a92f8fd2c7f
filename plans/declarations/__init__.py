"""What a plan declares before its operators: types, tables, functions, and the classes that these name."""

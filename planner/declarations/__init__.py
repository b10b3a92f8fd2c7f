"""Declarations made of other declarations: what LIKE takes over from a table, and what ALTER makes of one."""

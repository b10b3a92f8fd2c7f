"""Analyses of a plan along its edges: columns, row kinds, order of rows, states, and the problems of each."""

"""Compiles query blocks to relations, with a module for each clause."""

"""Inspects a checkpoint without a run: counts its state, prints rows, copies it, and compacts it."""

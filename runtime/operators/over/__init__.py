"""The kernels of over aggregates: in the order of a time, and by another column."""

"""A plan for the eyes: as a tree, a picture, a page, and the value of a notebook cell."""

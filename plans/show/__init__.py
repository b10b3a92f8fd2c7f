"""Views of a plan: a tree, a picture, a page, and the value of a notebook cell."""

"""Properties of the rows of a relation: keys, nullability, time attributes, and repeated reads."""

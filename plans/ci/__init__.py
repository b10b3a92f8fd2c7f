"""The checks that a change of plans goes through, and the report of them."""

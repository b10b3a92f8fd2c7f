"""What a plan means, by its edges: columns, row kinds, order of rows, states; and what is wrong with it."""

"""Pure, vectorised building blocks of the stateful operators: Arrow and numpy in, Arrow and numpy out."""

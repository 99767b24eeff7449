"""Does N* depend on the number of rows T, or on the dimension d? Five arms, each with its predictions."""

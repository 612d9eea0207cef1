"""Reading a log: where it is, which role each column has, and what cannot be used as it is."""

"""One aggregation of a log, in the engine that holds it, and what is made of its rows."""

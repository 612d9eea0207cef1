"""The aggregation of a log, in the engine that holds it, and what is computed from its answer."""

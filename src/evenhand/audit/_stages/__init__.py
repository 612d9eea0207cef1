"""The stages of an audit, which bring sums, inference and report together."""

"""Experiments from TOML files, the paper's among them; their runs and reports."""

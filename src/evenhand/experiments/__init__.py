"""The paper's sweeps as data, their runs, and the report."""

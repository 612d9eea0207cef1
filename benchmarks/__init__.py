"""How long a round takes, simulated and live, and what takes how long elsewhere: `make bench`."""

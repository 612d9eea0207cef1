"""Policies x worlds x replications -> tidy tables."""

from evenhand.simulation.results import Simulation
from evenhand.simulation.run import simulate

__all__ = ["Simulation", "simulate"]

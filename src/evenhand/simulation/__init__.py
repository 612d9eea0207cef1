"""Policies x worlds x replications -> tidy tables."""

from evenhand.simulation._plain_rounds import Round, each_round
from evenhand.simulation._simulate import simulate
from evenhand.simulation.floor import simulate_floor
from evenhand.simulation.results import Simulation

__all__ = ["Round", "Simulation", "each_round", "simulate", "simulate_floor"]

"""Where contexts and rewards come from."""

from evenhand.worlds.base import World
from evenhand.worlds.synthetic import LinearWorld, SyntheticWorld

__all__ = ["LinearWorld", "SyntheticWorld", "World"]

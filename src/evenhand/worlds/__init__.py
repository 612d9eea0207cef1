"""Where contexts and rewards come from."""

from evenhand.worlds.base import World
from evenhand.worlds.synthetic import LinearWorld, SyntheticWorld
from evenhand.worlds.table import TableWorld

__all__ = ["LinearWorld", "SyntheticWorld", "TableWorld", "World"]

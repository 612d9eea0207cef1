"""Worlds: where contexts and rewards come from."""

from evenhand.worlds.base import World
from evenhand.worlds.crossed import CrossedWorld
from evenhand.worlds.people import PeopleWorld
from evenhand.worlds.synthetic import LinearWorld, SyntheticWorld
from evenhand.worlds.table import TableWorld

__all__ = ["CrossedWorld", "LinearWorld", "PeopleWorld", "SyntheticWorld", "TableWorld", "World"]

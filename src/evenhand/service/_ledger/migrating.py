"""Schemas and their migrations, by Alembic."""

from __future__ import annotations

from importlib.resources import files

NEWEST = "0003"
KNOWN = ("0001", "0002", "0003")


def upgrade(url: str, revision: str = NEWEST) -> None:
    """Bring a database to a schema."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(files(__package__) / "migrations"))
    config.attributes["url"] = for_sqlalchemy(url)
    command.upgrade(config, revision)


def for_sqlalchemy(url: str) -> str:
    """The address of a store as SQLAlchemy writes it."""
    if url.startswith("sqlite:"):
        return f"sqlite:///{url.removeprefix('sqlite:')}"
    return f"postgresql+psycopg://{url.partition('://')[2]}"

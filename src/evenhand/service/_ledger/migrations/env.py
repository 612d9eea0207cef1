"""How Alembic reaches the database: by the address that `database.upgrade` gives."""

from alembic import context
from sqlalchemy import create_engine


def run() -> None:
    """Run the migrations that are due, each in its own transaction."""
    engine = create_engine(context.config.attributes["url"])
    with engine.connect() as connection:
        context.configure(
            connection=connection, transactional_ddl=True, transaction_per_migration=True
        )
        with context.begin_transaction():
            context.run_migrations()
    engine.dispose()


if hasattr(context, "config"):  # Alembic runs this file; others may only import it
    run()

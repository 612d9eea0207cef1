"""Counts may have fractions, for candidates whose group is known by probability."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Upgrade."""

    with op.batch_alter_table("tallies") as table:
        for name in ("decided", "explored", "rewarded", "late", "missing", "overridden"):
            table.alter_column(
                name, existing_type=sa.BigInteger(), type_=sa.Float(53), existing_nullable=False
            )

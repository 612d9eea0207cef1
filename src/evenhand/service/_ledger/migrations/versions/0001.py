"""The first schema of a ledger."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Upgrade."""

    op.create_table(
        "decisions",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("round", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("arm", sa.Integer(), nullable=False),
        sa.Column("grp", sa.Text(), nullable=False),
        sa.Column("person", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("id"),
    )
    op.create_index(
        "decisions_person",
        "decisions",
        ["person"],
        unique=False,
        sqlite_where=sa.text("person IS NOT NULL"),
        postgresql_where=sa.text("person IS NOT NULL"),
    )
    op.create_table(
        "entries",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("event", sa.BigInteger(), nullable=True),
        sa.Column("salt", sa.LargeBinary(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_index(
        "entries_rare",
        "entries",
        ["kind", "seq"],
        unique=False,
        sqlite_where=sa.text("(kind NOT IN ('decision', 'reward', 'true'))"),
        postgresql_where=sa.text("(kind NOT IN ('decision', 'reward', 'true'))"),
    )
    op.create_table(
        "head",
        sa.Column("one", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("round", sa.BigInteger(), nullable=False),
        sa.Column("events", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("one"),
    )
    op.create_table(
        "keys",
        sa.Column("sha256", sa.LargeBinary(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("roles", sa.Text(), nullable=False),
        sa.Column("made", sa.BigInteger(), nullable=False),
        sa.Column("withdrawn", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("sha256"),
    )
    op.create_table(
        "meta",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "overrides",
        sa.Column(
            "decision",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("arm", sa.Integer(), nullable=False),
        sa.Column("grp", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("shadow", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint("decision"),
    )
    op.create_table(
        "rewards",
        sa.Column(
            "decision",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("reward", sa.Float(precision=53), nullable=False),
        sa.Column("late", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint("decision"),
    )
    op.create_table(
        "sessions",
        sa.Column("sha256", sa.LargeBinary(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("roles", sa.Text(), nullable=False),
        sa.Column("csrf", sa.Text(), nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("sha256"),
    )
    op.create_table(
        "snapshots",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )
    op.create_table(
        "tallies",
        sa.Column(
            "hour",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("grp", sa.Text(), nullable=False),
        sa.Column("decided", sa.BigInteger(), nullable=False),
        sa.Column("explored", sa.BigInteger(), nullable=False),
        sa.Column("rewarded", sa.BigInteger(), nullable=False),
        sa.Column("late", sa.BigInteger(), nullable=False),
        sa.Column("missing", sa.BigInteger(), nullable=False),
        sa.Column("overridden", sa.BigInteger(), nullable=False),
        sa.Column("expected", sa.Float(precision=53), nullable=False),
        sa.Column("cost", sa.Float(precision=53), nullable=False),
        sa.Column("earned", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("hour", "grp"),
    )
    op.create_table(
        "tokens",
        sa.Column("sha256", sa.LargeBinary(), nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=False),
        sa.Column("roles", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("sha256"),
    )
    op.create_table(
        "truths",
        sa.Column(
            "decision",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("reward", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("decision"),
    )
    op.create_table(
        "users",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("password", sa.Text(), nullable=False),
        sa.Column("roles", sa.Text(), nullable=False),
        sa.Column("made", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "uses",
        sa.Column(
            "decision",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("decision"),
    )
    op.create_table(
        "waiting",
        sa.Column(
            "decision",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("due", sa.BigInteger(), nullable=False),
        sa.Column("grp", sa.Text(), nullable=False),
        sa.Column("rewarded", sa.SmallInteger(), nullable=False),
        sa.PrimaryKeyConstraint("decision"),
    )
    op.create_index("waiting_due", "waiting", ["due"], unique=False)

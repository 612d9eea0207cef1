"""The tables of a ledger, for SQLite and PostgreSQL alike.

`entries` is the ledger. All other tables follow from it (they are projections, and written in the
same transaction), except for those of keys and logins.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
)

from evenhand.service._ledger.transaction import TALLIED

metadata = MetaData()
# SQLite gives a table its own number only for this type, and then needs no second index.
_Number = BigInteger().with_variant(Integer, "sqlite")

entries = Table(
    "entries", metadata,
    Column("seq", _Number, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("subject", Text),
    Column("event", BigInteger),
    Column("salt", LargeBinary),
    Column("body", LargeBinary),
    Column("digest", LargeBinary, nullable=False),
    Column("hash", LargeBinary, nullable=False),
)  # fmt: skip
Index("entries_rare", entries.c.kind, entries.c.seq,
      sqlite_where=entries.c.kind.not_in(("decision", "reward", "true")),
      postgresql_where=entries.c.kind.not_in(("decision", "reward", "true")))  # fmt: skip

head = Table(
    "head", metadata,
    Column("one", SmallInteger, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("round", BigInteger, nullable=False),
    Column("events", BigInteger, nullable=False),
)  # fmt: skip

decisions = Table(
    "decisions", metadata,
    Column("seq", _Number, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False, unique=True),
    Column("round", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("arm", Integer, nullable=False),
    Column("grp", Text, nullable=False),
    Column("person", LargeBinary),
)  # fmt: skip
Index("decisions_person", decisions.c.person, sqlite_where=decisions.c.person.is_not(None),
      postgresql_where=decisions.c.person.is_not(None))  # fmt: skip

waiting = Table(
    "waiting", metadata,
    Column("decision", _Number, primary_key=True, autoincrement=False),
    Column("due", BigInteger, nullable=False),
    Column("grp", Text, nullable=False),
    Column("rewarded", SmallInteger, nullable=False),
)  # fmt: skip
Index("waiting_due", waiting.c.due)

rewards = Table(
    "rewards", metadata,
    Column("decision", _Number, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("reward", Float(53), nullable=False),
    Column("late", SmallInteger, nullable=False),
)  # fmt: skip

truths = Table(
    "truths", metadata,
    Column("decision", _Number, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("reward", Float(53), nullable=False),
)  # fmt: skip

overrides = Table(
    "overrides", metadata,
    Column("decision", _Number, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("arm", Integer, nullable=False),
    Column("grp", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("shadow", SmallInteger, nullable=False),
)  # fmt: skip

uses = Table(
    "uses", metadata,
    Column("decision", _Number, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
)  # fmt: skip

tallies = Table(
    "tallies", metadata,
    Column("hour", _Number, primary_key=True, autoincrement=False),
    Column("grp", Text, primary_key=True),
    # Numbers with fractions since schema 3: probabilities count for several groups.
    *(Column(name, Float(53), nullable=False) for name in TALLIED),
)  # fmt: skip

snapshots = Table(
    "snapshots", metadata,
    Column("seq", _Number, primary_key=True, autoincrement=False),
    Column("hash", LargeBinary, nullable=False),
    Column("state", LargeBinary, nullable=False),
)  # fmt: skip

meta = Table(
    "meta", metadata,
    Column("name", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)  # fmt: skip

keys = Table(
    "keys", metadata,
    Column("sha256", LargeBinary, primary_key=True),
    Column("name", Text, nullable=False),
    Column("roles", Text, nullable=False),
    Column("made", BigInteger, nullable=False),
    Column("withdrawn", BigInteger),
)  # fmt: skip

users = Table(
    "users", metadata,
    Column("name", Text, primary_key=True),
    Column("password", Text, nullable=False),
    Column("roles", Text, nullable=False),
    Column("made", BigInteger, nullable=False),
)  # fmt: skip

tokens = Table(
    "tokens", metadata,
    Column("sha256", LargeBinary, primary_key=True),
    Column("due", BigInteger, nullable=False),
    Column("roles", Text, nullable=False),
)  # fmt: skip

sessions = Table(
    "sessions", metadata,
    Column("sha256", LargeBinary, primary_key=True),
    Column("name", Text, nullable=False),
    Column("roles", Text, nullable=False),
    Column("csrf", Text, nullable=False),
    Column("due", BigInteger, nullable=False),
)  # fmt: skip

# Since schema 2.
reviews = Table(
    "reviews", metadata,
    Column("decision", _Number, primary_key=True, autoincrement=False),
    Column("asked", BigInteger, nullable=False),
    Column("claimed_by", Text),
    Column("claimed_until", BigInteger),
    Column("verdict", Text),
    Column("by", Text),
    Column("at", BigInteger),
)  # fmt: skip
Index("reviews_open", reviews.c.decision, sqlite_where=reviews.c.verdict.is_(None),
      postgresql_where=reviews.c.verdict.is_(None))  # fmt: skip

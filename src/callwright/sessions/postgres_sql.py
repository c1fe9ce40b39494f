"""The tables and statements of the PostgreSQL store.

Bodies are `text`, not `jsonb`, which rejects an escaped NUL and changes what was written. There are no locks of a
database session, so a pooler such as PgBouncer may stand in between.
"""

SCHEMA_VERSION = 1
CHANGES = "callwright_changes"
"""The channel of the notices that `APPEND` sends."""
SCHEMA_LOCK = 0x63616C6C
"""Two processes that create the tables at once take turns: CREATE TABLE IF NOT EXISTS alone can fail then."""

CREATE = """
CREATE TABLE IF NOT EXISTS callwright_schema (version int NOT NULL);
CREATE TABLE IF NOT EXISTS callwright_leases (
    id text PRIMARY KEY, holder text NOT NULL, owner text NOT NULL, epoch bigint NOT NULL, expires timestamptz NOT NULL
);
CREATE TABLE IF NOT EXISTS callwright_sessions (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE, title text NOT NULL,
    created_at double precision NOT NULL, updated_at double precision NOT NULL, waiting bool NOT NULL DEFAULT false
);
CREATE INDEX IF NOT EXISTS callwright_sessions_updated ON callwright_sessions (updated_at DESC);
CREATE INDEX IF NOT EXISTS callwright_sessions_waiting ON callwright_sessions (updated_at DESC) WHERE waiting;
CREATE TABLE IF NOT EXISTS callwright_records (
    session bigint NOT NULL REFERENCES callwright_sessions ON DELETE CASCADE, position int NOT NULL,
    at double precision NOT NULL, body text NOT NULL, PRIMARY KEY (session, position)
);
CREATE TABLE IF NOT EXISTS callwright_outputs (
    session bigint NOT NULL REFERENCES callwright_sessions ON DELETE CASCADE, id text NOT NULL, body text NOT NULL,
    PRIMARY KEY (session, id)
);
CREATE TABLE IF NOT EXISTS callwright_blobs (id text PRIMARY KEY, body text NOT NULL);
INSERT INTO callwright_schema SELECT 1 WHERE NOT EXISTS (SELECT FROM callwright_schema);
"""

IS_CREATED = "SELECT to_regclass('callwright_schema') IS NOT NULL AND to_regclass('callwright_blobs') IS NOT NULL"

TAKE = r"""
INSERT INTO callwright_leases AS lease (id, holder, owner, epoch, expires)
VALUES ($1, $2, $3, 1, now() + make_interval(secs => $4))
ON CONFLICT (id) DO UPDATE SET holder = $2, owner = $3, epoch = lease.epoch + 1, expires = excluded.expires
WHERE lease.expires < now() OR lease.holder = $2 OR (
    $3 <> '' AND regexp_replace(lease.owner, ' attempt \d+$', '') = regexp_replace($3, ' attempt \d+$', '')
    AND coalesce(substring(lease.owner FROM ' attempt (\d+)$'), '0')::numeric
        <= coalesce(substring($3 FROM ' attempt (\d+)$'), '0')::numeric
)
RETURNING epoch
"""
"""The same owner, or a later attempt of it, takes a session over at once, as `may_take_over` says, and others when the
lease has run out. The epoch tells holders apart.

The same holder takes it again: its first attempt may have been committed before its connection was lost.
"""
RENEW = """
UPDATE callwright_leases SET expires = now() + make_interval(secs => $4) WHERE id = $1 AND holder = $2 AND epoch = $3
RETURNING id
"""
RELEASE = "DELETE FROM callwright_leases WHERE id = $1 AND holder = $2"
"""Without its row, a late statement of this holder cannot extend the lease again: names of holders are used once."""
RELEASE_ALL = """
DELETE FROM callwright_leases lease USING unnest($1::text[], $2::text[]) AS held (id, holder)
WHERE lease.id = held.id AND lease.holder = held.holder
"""

APPEND = """
WITH wanted AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::bool[])
    AS w (id, holder, epoch, title, waiting)
), held AS (
    UPDATE callwright_leases lease SET expires = now() + make_interval(secs => $6) FROM wanted
    WHERE lease.id = wanted.id AND lease.holder = wanted.holder AND lease.epoch = wanted.epoch
    RETURNING lease.id, lease.holder, wanted.title, wanted.waiting
), session AS (
    INSERT INTO callwright_sessions (id, title, created_at, updated_at, waiting)
    SELECT id, title, extract(epoch FROM now()), extract(epoch FROM now()), waiting FROM held
    ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at, waiting = excluded.waiting RETURNING key, id
), added AS (
    INSERT INTO callwright_records (session, position, at, body)
    SELECT key, position, extract(epoch FROM now()), body
    FROM unnest($7::text[], $8::int[], $9::text[]) AS r (holder, position, body)
    JOIN held USING (holder) JOIN session USING (id)
)
SELECT holder, pg_notify('callwright_changes', id) FROM held
"""
"""Adds the records of several holders in one commit. Only a holder whose lease is still its own adds anything, even if
the batch also has records of the holder that took its session over.

Times are those of the server: the clocks of the machines that write may differ, and lists are in their order.

Listeners hear of it when it is committed. NOTIFY makes commits take turns, which costs little if many share one.
"""

KEEP = """
INSERT INTO callwright_outputs (session, id, body)
SELECT key, $4, $5 FROM callwright_sessions JOIN callwright_leases lease USING (id)
WHERE id = $1 AND lease.holder = $2 AND lease.epoch = $3
ON CONFLICT DO NOTHING
"""
KEEP_BLOB = "INSERT INTO callwright_blobs (id, body) VALUES ($1, $2) ON CONFLICT DO NOTHING"
FIND = "SELECT key FROM callwright_sessions WHERE id = $1"
READ = (
    "SELECT position, at, body FROM callwright_records WHERE session = $1 AND position >= $2 ORDER BY position LIMIT $3"
)
READ_BODIES = """
SELECT body FROM callwright_records JOIN callwright_sessions ON key = session
WHERE id = $1 AND position >= $2 ORDER BY position LIMIT $3
"""
READ_OUTPUT = """
SELECT body FROM callwright_outputs JOIN callwright_sessions ON key = session
WHERE callwright_sessions.id = $1 AND callwright_outputs.id = $2
"""
_ENTRY = """
SELECT id, title, created_at, updated_at,
    coalesce((SELECT max(position) + 1 FROM callwright_records WHERE session = key), 0)
FROM callwright_sessions
"""
LIST = f"{_ENTRY} WHERE waiting OR NOT $2 ORDER BY updated_at DESC, key DESC LIMIT $1"
ENTRY = f"{_ENTRY} WHERE id = $1"
SEARCH = """
SELECT id, position, body FROM callwright_records JOIN callwright_sessions ON key = session
WHERE body COLLATE "C" ILIKE $1 ESCAPE '!' AND ($2::text IS NULL OR id = $2) ORDER BY at DESC LIMIT $3
"""
"""In the collation C only ASCII letters have a case; in that of the database, the letter İ may find every i."""
FORK = """
WITH origin AS (SELECT key, title FROM callwright_sessions WHERE id = $1), copy AS (
    INSERT INTO callwright_sessions (id, title, created_at, updated_at)
    SELECT $2, title, extract(epoch FROM now()), extract(epoch FROM now()) FROM origin RETURNING key
), outputs AS (
    INSERT INTO callwright_outputs (session, id, body)
    SELECT copy.key, id, body FROM copy, origin JOIN callwright_outputs ON session = origin.key
), records AS (
    INSERT INTO callwright_records (session, position, at, body)
    SELECT copy.key, position, at, body FROM copy, origin JOIN callwright_records ON session = origin.key
    WHERE position < $3
)
SELECT key FROM copy
"""
DELETE = """
WITH free AS (
    INSERT INTO callwright_leases AS lease (id, holder, owner, epoch, expires) VALUES ($1, '', '', 1, '-infinity')
    ON CONFLICT (id) DO UPDATE SET holder = '', owner = '', expires = '-infinity' WHERE lease.expires < now()
    RETURNING id
)
DELETE FROM callwright_sessions WHERE id IN (SELECT id FROM free) RETURNING id
"""
"""Takes the lease away from a holder that stood still: what it adds later would be a session without its beginning.

The row is kept until `FORGET`: while the session is being deleted, others that take it must wait.
"""
FORGET = """
DELETE FROM callwright_leases
WHERE id IN (SELECT id FROM callwright_leases WHERE holder = '' FOR UPDATE SKIP LOCKED)
"""
"""Deletes the leases without a holder, those of deleted sessions; every append checks the name of its holder."""

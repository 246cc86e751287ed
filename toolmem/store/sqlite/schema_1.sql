-- The tables of the embedded store, schema version 1. Features of SQLite 3.40 only.
-- Two choices keep the cost of adding a call independent of the history:
-- * `calls` is clustered by one integer, tool << 32 | seq. The newest calls of a tool lie side by side, and the
--   columns that figures need stand before the payload, so that reading them never follows an overflow page.
-- * Guidance has a table of its own: a new call rewrites the short row of its tool only.
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE workspaces (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE judges (
    id INTEGER PRIMARY KEY,
    backend TEXT NOT NULL,
    model TEXT NOT NULL,
    prompt_version TEXT NOT NULL,
    UNIQUE (backend, model, prompt_version)
);
CREATE TABLE tools (
    id INTEGER PRIMARY KEY,
    workspace INTEGER NOT NULL,
    name TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    id_stem TEXT NOT NULL,            -- ids that the store assigns are stem-seq
    version INTEGER NOT NULL,
    guidance_version INTEGER NOT NULL,
    first_seq INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    covered TEXT NOT NULL,            -- JSON, ranges of kept seqs
    unjudged TEXT NOT NULL,           -- JSON, ranges of kept seqs
    calls INTEGER NOT NULL,           -- the lifetime counters from here
    successes INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    judged INTEGER NOT NULL,
    score_sum REAL NOT NULL,
    time_calls INTEGER NOT NULL,
    time_sum REAL NOT NULL,
    token_calls INTEGER NOT NULL,
    token_sum INTEGER NOT NULL,
    since INTEGER,                    -- all times: microseconds since 1970, UTC
    time_created INTEGER NOT NULL,
    time_modified INTEGER NOT NULL,
    UNIQUE (workspace, name),
    UNIQUE (workspace, memory_id)
);
CREATE TABLE guidance (tool INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE calls (
    key INTEGER PRIMARY KEY,          -- tool << 32 | seq
    success INTEGER,
    execution_failed INTEGER,
    score REAL,
    time_cost REAL,
    token_cost INTEGER,
    judge INTEGER,
    payload TEXT NOT NULL
);
CREATE TABLE call_ids (tool INTEGER NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (tool, digest)) WITHOUT ROWID;
CREATE TABLE verdicts (
    workspace INTEGER NOT NULL,
    key TEXT NOT NULL,
    judge INTEGER NOT NULL,
    score REAL NOT NULL,
    execution_failed INTEGER,
    error_class TEXT NOT NULL,
    summary TEXT NOT NULL,
    evaluation TEXT NOT NULL,
    PRIMARY KEY (workspace, key)
) WITHOUT ROWID;
CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    workspace INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    time_created INTEGER NOT NULL,
    time_modified INTEGER NOT NULL,
    value TEXT NOT NULL,
    UNIQUE (workspace, namespace, key)
);
-- What can be searched together. Ids are never used twice, so that an index cached under one never turns stale.
CREATE TABLE scopes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace INTEGER NOT NULL,
    kind INTEGER NOT NULL,            -- 0 guidance of tools, 1 keyed records
    namespace TEXT NOT NULL,          -- '' for kind 0
    changes INTEGER NOT NULL,         -- grows with every write to its documents
    deletions INTEGER NOT NULL,       -- grows with every document that goes
    UNIQUE (workspace, kind, namespace)
);
CREATE TABLE documents (
    id INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    change INTEGER NOT NULL,          -- the scope's `changes` when it was written
    key TEXT NOT NULL,
    time_modified INTEGER NOT NULL,
    vector BLOB,                      -- float32, little endian, unit length
    text TEXT NOT NULL,
    UNIQUE (scope, key)
);
CREATE INDEX documents_by_change ON documents (scope, change);
CREATE VIRTUAL TABLE document_words USING fts5(
    scope, words, tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* Co'"
);

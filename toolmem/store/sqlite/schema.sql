-- The tables of the embedded store. Features of SQLite 3.40 only.
-- These choices keep the cost of adding a call independent of the history:
-- * `calls` is clustered by one integer, tool << 32 | seq. The newest calls of a tool lie side by side, in short rows
--   with what figures need. What a call brought stands in the log of its workspace, where it stays when the window of
--   its tool drops it: `call_log` grows at its end, and a call added writes its last page.
-- * The log begins at `log_first`. What stands before it is held by a window alone, and goes when that drops it, so
--   that nothing is ever counted or looked through to keep the limits.
-- * Guidance has a table of its own: a new call rewrites the short row of its tool only.
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE workspaces (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    rules_changed INTEGER NOT NULL DEFAULT 0,  -- `rule_changes` at the last write to a rule
    log_first INTEGER NOT NULL DEFAULT 1,
    log_last INTEGER NOT NULL DEFAULT 0,       -- positions are never given twice
    log_calls INTEGER NOT NULL DEFAULT 0,      -- from log_first on, and so log_bytes
    log_bytes INTEGER NOT NULL DEFAULT 0
);
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
    place INTEGER NOT NULL,           -- of its row in `call_log`
    success INTEGER,
    execution_failed INTEGER,
    score REAL,
    time_cost REAL,
    token_cost INTEGER,
    judge INTEGER
);
CREATE TABLE call_log (
    place INTEGER PRIMARY KEY,        -- workspace << 40 | position
    key INTEGER NOT NULL,             -- of its row in `calls`
    bytes INTEGER NOT NULL,           -- of the payload as it came
    conversation BLOB,                -- digest; null: not told
    payload TEXT NOT NULL
);
CREATE INDEX call_log_conversations ON call_log (conversation) WHERE conversation IS NOT NULL;
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
CREATE TABLE decisions (
    place INTEGER PRIMARY KEY,        -- workspace << 40 | position
    workspace INTEGER NOT NULL,
    id TEXT NOT NULL,
    conversation BLOB,                -- digest; null: not told
    tool TEXT NOT NULL,
    value TEXT NOT NULL,              -- JSON
    UNIQUE (workspace, id)
);
CREATE INDEX decisions_by_conversation ON decisions (conversation) WHERE conversation IS NOT NULL;
CREATE INDEX decisions_by_tool ON decisions (workspace, tool);

-- Begins anywhere, so that the stamps of two files are not the same.
INSERT INTO meta (name, value) VALUES ('rule_changes', abs(random()) % 1000000000000);
CREATE TRIGGER rule_made AFTER INSERT ON records
WHEN NEW.namespace >= 'tool-' AND NEW.namespace < 'tool.' AND NEW.key >= 'rule/' AND NEW.key < 'rule0'
BEGIN
    UPDATE meta SET value = value + 1 WHERE name = 'rule_changes';
    UPDATE workspaces SET rules_changed = (SELECT value FROM meta WHERE name = 'rule_changes') WHERE id = NEW.workspace;
END;
CREATE TRIGGER rule_changed AFTER UPDATE ON records
WHEN NEW.namespace >= 'tool-' AND NEW.namespace < 'tool.' AND NEW.key >= 'rule/' AND NEW.key < 'rule0'
BEGIN
    UPDATE meta SET value = value + 1 WHERE name = 'rule_changes';
    UPDATE workspaces SET rules_changed = (SELECT value FROM meta WHERE name = 'rule_changes') WHERE id = NEW.workspace;
END;
CREATE TRIGGER rule_deleted AFTER DELETE ON records
WHEN OLD.namespace >= 'tool-' AND OLD.namespace < 'tool.' AND OLD.key >= 'rule/' AND OLD.key < 'rule0'
BEGIN
    UPDATE meta SET value = value + 1 WHERE name = 'rule_changes';
    UPDATE workspaces SET rules_changed = (SELECT value FROM meta WHERE name = 'rule_changes') WHERE id = OLD.workspace;
END;

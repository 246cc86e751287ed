-- Schema version 2: what a call brought moves from `calls` into the log of its workspace, where it stays when the
-- window of its tool drops it; decisions of the guard are logged; every write to a rule changes a number.
-- * `call_log` grows at its end: a call added writes its last page. `calls` keeps the short row with what figures need.
-- * The log begins at `log_first`. What stands before it is held by a window alone, and goes when that drops it, so
--   that nothing is ever counted or looked through to keep the limits.
-- `temp.arrivals` is made by `schema.migrate`: the kept calls, with what only their payload tells.
ALTER TABLE workspaces ADD COLUMN rules_changed INTEGER NOT NULL DEFAULT 0;  -- `rule_changes` at the last such write
ALTER TABLE workspaces ADD COLUMN log_first INTEGER NOT NULL DEFAULT 1;
ALTER TABLE workspaces ADD COLUMN log_last INTEGER NOT NULL DEFAULT 0;       -- positions are never given twice
ALTER TABLE workspaces ADD COLUMN log_calls INTEGER NOT NULL DEFAULT 0;      -- from log_first on, and so log_bytes
ALTER TABLE workspaces ADD COLUMN log_bytes INTEGER NOT NULL DEFAULT 0;

CREATE TABLE call_log (
    place INTEGER PRIMARY KEY,        -- workspace << 40 | position
    key INTEGER NOT NULL,             -- of its row in `calls`
    bytes INTEGER NOT NULL,           -- of the payload as it came
    conversation BLOB,                -- digest; null: not told
    payload TEXT NOT NULL
);
INSERT INTO call_log (place, key, bytes, conversation, payload)
SELECT
    workspace << 40 | row_number() OVER (PARTITION BY workspace ORDER BY arrived, key),
    key, length(CAST(payload AS BLOB)), conversation, payload
FROM (
    -- as they were made, and those of one tool as they came
    SELECT key, workspace, conversation, max(created) OVER (PARTITION BY key >> 32 ORDER BY key) AS arrived
    FROM temp.arrivals
) JOIN calls USING (key);
CREATE INDEX call_log_conversations ON call_log (conversation) WHERE conversation IS NOT NULL;

CREATE TABLE calls_2 (
    key INTEGER PRIMARY KEY,          -- tool << 32 | seq
    place INTEGER NOT NULL,           -- of its row in `call_log`
    success INTEGER,
    execution_failed INTEGER,
    score REAL,
    time_cost REAL,
    token_cost INTEGER,
    judge INTEGER
);
INSERT INTO calls_2
SELECT key, call_log.place, success, execution_failed, score, time_cost, token_cost, judge
FROM calls JOIN (SELECT key, place FROM call_log ORDER BY key) AS call_log USING (key);
DROP TABLE calls;
ALTER TABLE calls_2 RENAME TO calls;

UPDATE workspaces SET (log_last, log_calls, log_bytes) = (
    SELECT coalesce(max(place) & 0xffffffffff, 0), count(*), coalesce(sum(bytes), 0)
    FROM call_log WHERE place BETWEEN workspaces.id << 40 AND workspaces.id << 40 | 0xffffffffff
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
INSERT OR REPLACE INTO meta (name, value) VALUES ('rule_changes', abs(random()) % 1000000000000);
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

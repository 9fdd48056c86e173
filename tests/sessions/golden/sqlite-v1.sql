PRAGMA application_id=1282688882;
PRAGMA user_version=1;
BEGIN TRANSACTION;
CREATE TABLE lighter_entries (
            tree TEXT NOT NULL,
            id TEXT NOT NULL,
            parent_id TEXT,
            position INTEGER NOT NULL,
            created TEXT NOT NULL,
            message TEXT NOT NULL,
            search TEXT NOT NULL,
            PRIMARY KEY (tree, id),
            FOREIGN KEY (tree, parent_id) REFERENCES lighter_entries (tree, id)
        );
INSERT INTO "lighter_entries" VALUES('62c7d84957cc4a778162b9e809a6c353','238117cf579c4ff0951276e52ab6fd4b',NULL,1,'2026-11-30T23:49:20.905224Z','{"version":1,"messages":[{"role":"user","content":"How many books? \u0000 "}]}','how many books? � ');
INSERT INTO "lighter_entries" VALUES('62c7d84957cc4a778162b9e809a6c353','68b3ff35f63c49f5a0bba12714e3ca0f','238117cf579c4ff0951276e52ab6fd4b',2,'2026-11-30T23:49:20.979188Z','{"version":1,"messages":[{"role":"assistant","content":"Let me count.","reasoning":"hm","tool_calls":[{"call_id":"c1","tool_name":"count","arguments":"{\"shelf\": \"é\"}"}],"usage":{"input_tokens":3,"output_tokens":4},"stop_reason":"tool"}]}','let me count.');
INSERT INTO "lighter_entries" VALUES('62c7d84957cc4a778162b9e809a6c353','e8b8588e525643d2a0f411c52ac2225f','68b3ff35f63c49f5a0bba12714e3ca0f',3,'2026-11-30T23:49:20.987132Z','{"version":1,"messages":[{"role":"tool","call_id":"c1","tool_name":"count","tool_output":"42"}]}','42');
INSERT INTO "lighter_entries" VALUES('62c7d84957cc4a778162b9e809a6c353','b8ac1ce708614e65b6de407ae122f0d1','e8b8588e525643d2a0f411c52ac2225f',4,'2026-11-30T23:49:20.987132Z','{"version":1,"messages":[{"role":"assistant","content":"42 books.","stop_reason":"stop"}]}','42 books.');
INSERT INTO "lighter_entries" VALUES('62c7d84957cc4a778162b9e809a6c353','29106b11f9aa4d678848b52b094ccf46','68b3ff35f63c49f5a0bba12714e3ca0f',3,'2026-11-30T23:49:21.014996Z','{"version":1,"messages":[{"role":"user","content":"Never mind."}]}','never mind.');
CREATE TABLE lighter_sessions (
            id TEXT NOT NULL PRIMARY KEY,
            tree TEXT NOT NULL,
            head TEXT NOT NULL,
            revision INTEGER NOT NULL,
            touched BIGINT NOT NULL,
            created TEXT NOT NULL,
            updated TEXT NOT NULL,
            FOREIGN KEY (tree, head) REFERENCES lighter_entries (tree, id)
        );
INSERT INTO "lighter_sessions" VALUES('chat','62c7d84957cc4a778162b9e809a6c353','b8ac1ce708614e65b6de407ae122f0d1',4,3,'2026-11-30T23:49:20.905224Z','2026-11-30T23:49:20.987132Z');
INSERT INTO "lighter_sessions" VALUES('fork','62c7d84957cc4a778162b9e809a6c353','29106b11f9aa4d678848b52b094ccf46',3,5,'2026-11-30T23:49:21.000530Z','2026-11-30T23:49:21.014996Z');
CREATE INDEX lighter_entries_parent ON lighter_entries (tree, parent_id);
CREATE INDEX lighter_sessions_touched ON lighter_sessions (touched, id);
CREATE INDEX lighter_sessions_head ON lighter_sessions (tree, head);
COMMIT;

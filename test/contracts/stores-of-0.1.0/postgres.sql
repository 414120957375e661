CREATE TABLE ebb_pinned.ebb_approval (
    id bigint NOT NULL,
    at_ms double precision NOT NULL,
    body text NOT NULL
);
CREATE SEQUENCE ebb_pinned.ebb_approval_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE ebb_pinned.ebb_approval_id_seq OWNED BY ebb_pinned.ebb_approval.id;
CREATE TABLE ebb_pinned.ebb_history (
    id bigint NOT NULL,
    compute_id text NOT NULL,
    at_ms double precision NOT NULL,
    body text NOT NULL
);
CREATE SEQUENCE ebb_pinned.ebb_history_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE ebb_pinned.ebb_history_id_seq OWNED BY ebb_pinned.ebb_history.id;
CREATE SEQUENCE ebb_pinned.ebb_lease_token
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE ebb_pinned.ebb_meta (
    key text NOT NULL,
    value text NOT NULL
);
CREATE TABLE ebb_pinned.ebb_override (
    kind text NOT NULL,
    id text NOT NULL,
    expires_at_ms double precision NOT NULL,
    body text NOT NULL
);
CREATE TABLE ebb_pinned.ebb_record (
    project_id text NOT NULL,
    compute_id text NOT NULL,
    body text NOT NULL
);
CREATE TABLE ebb_pinned.ebb_samples (
    compute_id text NOT NULL,
    body text NOT NULL
);
CREATE TABLE ebb_pinned.ebb_slot (
    policy text NOT NULL,
    compute_id text NOT NULL,
    until_ms double precision NOT NULL
);
ALTER TABLE ONLY ebb_pinned.ebb_approval ALTER COLUMN id SET DEFAULT nextval('ebb_pinned.ebb_approval_id_seq'::regclass);
ALTER TABLE ONLY ebb_pinned.ebb_history ALTER COLUMN id SET DEFAULT nextval('ebb_pinned.ebb_history_id_seq'::regclass);
INSERT INTO ebb_pinned.ebb_history VALUES (1, 'ep-00002-2', 1795315982311, '{"atMs":1795315982311,"setHash":"5c322c701ff9b4de34d16712cfca560c70873276f5e4d24d19eaba710a0d474a","projectId":"api-project-00002","computeId":"ep-00002-2","policy":"office-hours","from":{"minCu":0.25,"maxCu":2},"to":{"minCu":1,"maxCu":4},"kind":"held","reasons":[{"code":"window_open","policy":"office-hours","message":"size 0.25-2 → 1-4 CU: window 1 of office-hours, priority 0, open since ever"},{"code":"first_sight","policy":"office-hours","message":"ebb has just met this active compute: waiting for sleep or for the next boundary"}]}');
INSERT INTO ebb_pinned.ebb_history VALUES (2, 'ep-00003-1', 1795315982390, '{"atMs":1795315982390,"setHash":"5c322c701ff9b4de34d16712cfca560c70873276f5e4d24d19eaba710a0d474a","projectId":"dev-project-00003","computeId":"ep-00003-1","policy":"office-hours","from":{"minCu":0.25,"maxCu":2},"to":{"minCu":1,"maxCu":4},"kind":"held","reasons":[{"code":"window_open","policy":"office-hours","message":"size 0.25-2 → 1-4 CU: window 1 of office-hours, priority 0, open since ever"},{"code":"first_sight","policy":"office-hours","message":"ebb has just met this active compute: waiting for sleep or for the next boundary"}]}');
INSERT INTO ebb_pinned.ebb_history VALUES (3, 'ep-00003-2', 1795315982390, '{"atMs":1795315982390,"setHash":"5c322c701ff9b4de34d16712cfca560c70873276f5e4d24d19eaba710a0d474a","projectId":"dev-project-00003","computeId":"ep-00003-2","policy":"office-hours","from":{"minCu":0.25,"maxCu":1},"to":{"minCu":1,"maxCu":4},"kind":"held","reasons":[{"code":"window_open","policy":"office-hours","message":"size 0.25-1 → 1-4 CU: window 1 of office-hours, priority 0, open since ever"},{"code":"first_sight","policy":"office-hours","message":"ebb has just met this active compute: waiting for sleep or for the next boundary"}]}');
INSERT INTO ebb_pinned.ebb_history VALUES (4, 'ep-00001-1', 1795316007955, '{"atMs":1795316007955,"projectId":"web-project-00001","computeId":"ep-00001-1","kind":"hold","setHash":"5c322c701ff9b4de34d16712cfca560c70873276f5e4d24d19eaba710a0d474a","who":"ann","reasons":[{"code":"hold","message":"held: size 2 CU, until 2027-02-20T02:53:27Z: load test"}]}');
INSERT INTO ebb_pinned.ebb_history VALUES (5, 'ep-00001-1', 1795316008505, '{"atMs":1795316008505,"setHash":"5c322c701ff9b4de34d16712cfca560c70873276f5e4d24d19eaba710a0d474a","projectId":"web-project-00001","computeId":"ep-00001-1","policy":"hold h-c8ea52ccf4","from":{"minCu":1,"maxCu":4},"to":{"minCu":2,"maxCu":2},"kind":"write","reasons":[{"code":"hold","policy":"hold h-c8ea52ccf4","message":"size 1-4 → 2 CU: hold of ann until 2027-02-20T02:53:27Z: load test (1-4 CU → 2 CU)"}]}');
INSERT INTO ebb_pinned.ebb_history VALUES (6, '', 1795316013521, '{"atMs":1795316013521,"projectId":"","computeId":"","kind":"freeze","setHash":"5c322c701ff9b4de34d16712cfca560c70873276f5e4d24d19eaba710a0d474a","who":"ann","reasons":[{"code":"frozen","message":"frozen: {\"projects\":[\"api-*\"]}, until 2027-02-20T02:53:33Z: migration"}]}');
INSERT INTO ebb_pinned.ebb_history VALUES (7, 'ep-00002-2', 1795316013907, '{"atMs":1795316013907,"setHash":"5c322c701ff9b4de34d16712cfca560c70873276f5e4d24d19eaba710a0d474a","projectId":"api-project-00002","computeId":"ep-00002-2","policy":"office-hours","from":{"minCu":0.25,"maxCu":2},"to":{"minCu":1,"maxCu":4},"kind":"held","reasons":[{"code":"window_open","policy":"office-hours","message":"size 0.25-2 → 1-4 CU: window 1 of office-hours, priority 0, open since ever"},{"code":"frozen","policy":"office-hours","message":"frozen by ann until 2027-02-20T02:53:33Z: migration"}]}');
INSERT INTO ebb_pinned.ebb_meta VALUES ('generation', '{"number":1795315981724,"setHash":"5c322c701ff9b4de34d16712cfca560c70873276f5e4d24d19eaba710a0d474a"}');
INSERT INTO ebb_pinned.ebb_meta VALUES ('revision-of-holds', 'ac415018-2d0b-4796-9389-e9893243375c');
INSERT INTO ebb_pinned.ebb_meta VALUES ('store-id', '187c4eb5-015d-4be8-b58c-5245fd43b49b');
INSERT INTO ebb_pinned.ebb_meta VALUES ('revision-of-freezes', '0bba0606-94d0-4bc8-aece-81d46ca0bd2f');
INSERT INTO ebb_pinned.ebb_override VALUES ('holds', 'h-c8ea52ccf4', 1803092007955, '{"id":"h-c8ea52ccf4","projectId":"web-project-00001","computeId":"ep-00001-1","owner":"ann","reason":"load test","createdAtMs":1795316007955,"expiresAtMs":1803092007955,"size":{"minCu":2,"maxCu":2}}');
INSERT INTO ebb_pinned.ebb_override VALUES ('freezes', 'f-b200f7b601', 1803092013521, '{"id":"f-b200f7b601","owner":"ann","reason":"migration","createdAtMs":1795316013521,"expiresAtMs":1803092013521,"select":{"projects":["api-*"],"minAgeMs":0},"allowRaise":false}');
INSERT INTO ebb_pinned.ebb_record VALUES ('api-project-00002', 'ep-00002-1', '{"version":1,"record":{"baseline":{"minCu":1,"maxCu":4,"suspendTimeoutSeconds":600},"firstSeenAtMs":1795315982176,"lastApplied":{"minCu":1,"maxCu":4,"suspendTimeoutSeconds":600},"lastDecidedAtMs":1795315982176,"openOperations":[],"enforcedSinceMs":1795315982176,"wanted":{"size":{"fields":{"minCu":1,"maxCu":4},"sinceMs":0},"suspend_timeout":{"fields":{"suspendTimeoutSeconds":600},"sinceMs":0}}}}');
INSERT INTO ebb_pinned.ebb_record VALUES ('api-project-00002', 'ep-00002-2', '{"version":1,"record":{"baseline":{"minCu":0.25,"maxCu":2,"suspendTimeoutSeconds":600},"firstSeenAtMs":1795315982176,"lastApplied":{"suspendTimeoutSeconds":600},"lastDecidedAtMs":1795315982176,"openOperations":[],"enforcedSinceMs":1795315982176,"wanted":{"size":{"fields":{"minCu":1,"maxCu":4},"sinceMs":0},"suspend_timeout":{"fields":{"suspendTimeoutSeconds":600},"sinceMs":0}}}}');
INSERT INTO ebb_pinned.ebb_record VALUES ('dev-project-00003', 'ep-00003-1', '{"version":1,"record":{"baseline":{"minCu":0.25,"maxCu":2,"suspendTimeoutSeconds":600},"firstSeenAtMs":1795315982368,"lastApplied":{"suspendTimeoutSeconds":600},"lastDecidedAtMs":1795315982368,"openOperations":[],"enforcedSinceMs":1795315982368,"wanted":{"size":{"fields":{"minCu":1,"maxCu":4},"sinceMs":0},"suspend_timeout":{"fields":{"suspendTimeoutSeconds":600},"sinceMs":0}}}}');
INSERT INTO ebb_pinned.ebb_record VALUES ('web-project-00001', 'ep-00001-2', '{"version":1,"record":{"baseline":{"minCu":1,"maxCu":4,"suspendTimeoutSeconds":600},"firstSeenAtMs":1795315982354,"lastApplied":{"minCu":1,"maxCu":4,"suspendTimeoutSeconds":600},"lastDecidedAtMs":1795315982354,"openOperations":[],"enforcedSinceMs":1795315982354,"wanted":{"size":{"fields":{"minCu":1,"maxCu":4},"sinceMs":0},"suspend_timeout":{"fields":{"suspendTimeoutSeconds":600},"sinceMs":0}}}}');
INSERT INTO ebb_pinned.ebb_record VALUES ('dev-project-00003', 'ep-00003-2', '{"version":1,"record":{"baseline":{"minCu":0.25,"maxCu":1,"suspendTimeoutSeconds":600},"firstSeenAtMs":1795315982368,"lastApplied":{"suspendTimeoutSeconds":600},"lastDecidedAtMs":1795315982368,"openOperations":[],"enforcedSinceMs":1795315982368,"wanted":{"size":{"fields":{"minCu":1,"maxCu":4},"sinceMs":0},"suspend_timeout":{"fields":{"suspendTimeoutSeconds":600},"sinceMs":0}}}}');
INSERT INTO ebb_pinned.ebb_record VALUES ('shop-project-00004', 'ep-00004-1', '{"version":1,"record":{"baseline":{"minCu":1,"maxCu":4,"suspendTimeoutSeconds":600},"firstSeenAtMs":1795315982374,"lastApplied":{"minCu":1,"maxCu":4,"suspendTimeoutSeconds":600},"lastDecidedAtMs":1795315982374,"openOperations":[],"enforcedSinceMs":1795315982374,"wanted":{"size":{"fields":{"minCu":1,"maxCu":4},"sinceMs":0},"suspend_timeout":{"fields":{"suspendTimeoutSeconds":600},"sinceMs":0}}}}');
INSERT INTO ebb_pinned.ebb_record VALUES ('shop-project-00004', 'ep-00004-2', '{"version":1,"record":{"baseline":{"minCu":1,"maxCu":4,"suspendTimeoutSeconds":600},"firstSeenAtMs":1795315982374,"lastApplied":{"minCu":1,"maxCu":4,"suspendTimeoutSeconds":600},"lastDecidedAtMs":1795315982374,"openOperations":[],"enforcedSinceMs":1795315982374,"wanted":{"size":{"fields":{"minCu":1,"maxCu":4},"sinceMs":0},"suspend_timeout":{"fields":{"suspendTimeoutSeconds":600},"sinceMs":0}}}}');
INSERT INTO ebb_pinned.ebb_record VALUES ('web-project-00001', 'ep-00001-1', '{"version":1,"record":{"baseline":{"minCu":1,"maxCu":4,"suspendTimeoutSeconds":600},"firstSeenAtMs":1795315982354,"enforcedSinceMs":1795315982354,"lastApplied":{"minCu":2,"maxCu":2,"suspendTimeoutSeconds":600},"lastDecidedAtMs":1795316008354,"openOperations":[],"wanted":{"size":{"fields":{"minCu":2,"maxCu":2},"sinceMs":1795316007955},"suspend_timeout":{"fields":{"suspendTimeoutSeconds":600},"sinceMs":0}},"lastSentAtMs":1795316008470}}');
ALTER TABLE ONLY ebb_pinned.ebb_approval
    ADD CONSTRAINT ebb_approval_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ebb_pinned.ebb_history
    ADD CONSTRAINT ebb_history_pkey PRIMARY KEY (id);
ALTER TABLE ONLY ebb_pinned.ebb_meta
    ADD CONSTRAINT ebb_meta_pkey PRIMARY KEY (key);
ALTER TABLE ONLY ebb_pinned.ebb_override
    ADD CONSTRAINT ebb_override_pkey PRIMARY KEY (kind, id);
ALTER TABLE ONLY ebb_pinned.ebb_record
    ADD CONSTRAINT ebb_record_pkey PRIMARY KEY (project_id, compute_id);
ALTER TABLE ONLY ebb_pinned.ebb_samples
    ADD CONSTRAINT ebb_samples_pkey PRIMARY KEY (compute_id);
ALTER TABLE ONLY ebb_pinned.ebb_slot
    ADD CONSTRAINT ebb_slot_pkey PRIMARY KEY (policy, compute_id);
CREATE INDEX ebb_history_of ON ebb_pinned.ebb_history USING btree (compute_id, id);
SELECT setval('ebb_pinned.ebb_history_id_seq', 7);

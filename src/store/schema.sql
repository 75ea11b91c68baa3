-- What berthd remembers.  Times are nanoseconds since 1970.

-- Everything that happened, in order, as the event stream tells it.
CREATE TABLE event (
    seq     INTEGER PRIMARY KEY,
    at_ns   INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    job     INTEGER,
    text    TEXT NOT NULL           -- JSON, one line
);
CREATE INDEX event_by_job ON event (job, seq) WHERE job IS NOT NULL;
CREATE INDEX event_progress ON event (at_ns) WHERE kind = 'progress';

-- Every job that was ever accepted or rejected, as people see it.
CREATE TABLE job (
    id          INTEGER PRIMARY KEY,
    uid         INTEGER NOT NULL,
    user        TEXT NOT NULL,
    name        TEXT,
    class       TEXT NOT NULL,
    state       TEXT NOT NULL,
    reason      TEXT,
    gpus        INTEGER NOT NULL,
    types       TEXT,
    entity      TEXT,
    array_id    INTEGER,
    array_index INTEGER,
    placement   TEXT,               -- JSON; where it is, or was last
    attempt     INTEGER,
    preemptions INTEGER NOT NULL DEFAULT 0,
    failures    INTEGER NOT NULL DEFAULT 0,
    exit_code   INTEGER,
    submit_ns   INTEGER NOT NULL,
    start_ns    INTEGER,
    end_ns      INTEGER,
    waited_ns   INTEGER NOT NULL DEFAULT 0,
    served_ns   INTEGER NOT NULL DEFAULT 0,
    step        REAL,
    steps       REAL,
    rate_per_s  REAL,
    loss        REAL,
    held        INTEGER NOT NULL DEFAULT 0, -- by its owner
    request     TEXT NOT NULL       -- JSON, as it was accepted
);
CREATE INDEX job_live ON job (id) WHERE end_ns IS NULL;
CREATE INDEX job_by_submit ON job (submit_ns);
CREATE INDEX job_by_array ON job (array_id) WHERE array_id IS NOT NULL;

-- Jobs that have not ended, as the engine needs them after a restart: a snapshot that is
-- written anew, job by job, in the same transaction as the events that change it.
CREATE TABLE live (
    id          INTEGER PRIMARY KEY REFERENCES job (id),
    phase       TEXT NOT NULL,
    class       TEXT NOT NULL,
    attempt     INTEGER NOT NULL,   -- -1: never started
    leaving     INTEGER NOT NULL,
    steps       REAL NOT NULL,
    steps_total REAL NOT NULL,
    step_s      REAL NOT NULL,
    rate_per_s  REAL NOT NULL,
    anchor_ns   INTEGER NOT NULL,
    loss        REAL,
    since_ns    INTEGER NOT NULL,
    first_start_ns INTEGER NOT NULL,
    waited_ns   INTEGER NOT NULL,
    served_ns   INTEGER NOT NULL,
    recalled_ns INTEGER NOT NULL,
    preemptions INTEGER NOT NULL,
    failures    INTEGER NOT NULL,
    pause_ns    INTEGER NOT NULL,
    load_ns     INTEGER NOT NULL,
    grace_ns    INTEGER NOT NULL,
    weight      REAL NOT NULL,
    deadline_ns INTEGER NOT NULL,
    level       INTEGER NOT NULL,
    steps_max   INTEGER NOT NULL,
    spread      INTEGER NOT NULL,
    beside      INTEGER,            -- shares the accelerators of this job
    next_beside INTEGER,            -- will share those of this job
    seats       TEXT,               -- node:gpus:cpu:mem …, gpus as bits
    next        TEXT,               -- promised seats
    promises    TEXT,               -- victim:node:gpus:cpu:mem …
    served      TEXT                -- GPU-time by type, type:ns …
);

-- What each preemption cost and brought.
CREATE TABLE ledger (
    at_ns       INTEGER NOT NULL,
    victim      INTEGER NOT NULL,
    number      INTEGER NOT NULL,   -- of the victim's preemptions: 1, 2, …
    newcomer    INTEGER,
    rule        TEXT NOT NULL,
    gpus        INTEGER NOT NULL,
    predicted_cost_ns INTEGER NOT NULL,
    predicted_wait_ns INTEGER NOT NULL,
    pause_ns    INTEGER NOT NULL DEFAULT 0,
    load_ns     INTEGER NOT NULL DEFAULT 0,
    redo_ns     INTEGER NOT NULL DEFAULT 0,
    steps       REAL NOT NULL,
    rate_per_s  REAL NOT NULL,
    started_ns  INTEGER,            -- of the newcomer
    shared_by   INTEGER NOT NULL DEFAULT 1,
    wait_saved_s REAL,              -- known when the victim has ended
    open        INTEGER NOT NULL,   -- 2: the victim has still to load again
    PRIMARY KEY (victim, number)
) WITHOUT ROWID;
CREATE INDEX ledger_open ON ledger (victim) WHERE open;

-- Small facts: the next id, the policy in office.
CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

"""Numbered schema migrations. A migration is never edited once it has landed; a change is a new one at the end."""

from __future__ import annotations

MIGRATIONS = (
    """
    -- the newest write group of each process, so that a COMMIT with an I/O error can be looked up
    CREATE TABLE groups (process TEXT PRIMARY KEY, id INTEGER NOT NULL) WITHOUT ROWID;

    CREATE TABLE sessions (
        id TEXT PRIMARY KEY,
        key TEXT NOT NULL,
        agent TEXT NOT NULL,
        owner TEXT NOT NULL DEFAULT '',
        epoch INTEGER NOT NULL DEFAULT 0,
        next_seq INTEGER NOT NULL DEFAULT 1,
        leaf TEXT NOT NULL DEFAULT '',
        title TEXT NOT NULL DEFAULT '',
        model TEXT NOT NULL DEFAULT '',
        parent TEXT NOT NULL DEFAULT '',
        created INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        ended INTEGER,
        end_reason TEXT NOT NULL DEFAULT ''
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX sessions_live ON sessions (key) WHERE ended IS NULL;

    CREATE TABLE entries (
        session TEXT NOT NULL,
        seq INTEGER NOT NULL,
        id TEXT NOT NULL,
        parent TEXT NOT NULL,
        at INTEGER NOT NULL,
        turn TEXT NOT NULL,
        trust TEXT NOT NULL,
        kind TEXT NOT NULL,
        payload BLOB NOT NULL
    );
    CREATE UNIQUE INDEX entries_place ON entries (session, seq);

    CREATE TABLE turns (
        id TEXT PRIMARY KEY,
        session TEXT NOT NULL,
        state TEXT NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 1,
        stop_requested INTEGER NOT NULL DEFAULT 0,
        started INTEGER NOT NULL,
        ended INTEGER,
        cost INTEGER,
        error TEXT NOT NULL DEFAULT ''
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX turns_live ON turns (session) WHERE state IN ('running', 'waiting');
    CREATE INDEX turns_session ON turns (session, started);

    CREATE TABLE inbox (
        id INTEGER PRIMARY KEY,
        key TEXT NOT NULL,
        channel TEXT NOT NULL,
        account TEXT NOT NULL,
        event TEXT NOT NULL,
        state TEXT NOT NULL,
        received INTEGER NOT NULL,
        turn TEXT NOT NULL DEFAULT '',
        reason TEXT NOT NULL DEFAULT '',
        payload BLOB NOT NULL
    );
    CREATE UNIQUE INDEX inbox_event ON inbox (channel, account, event);
    CREATE INDEX inbox_queued ON inbox (key, id) WHERE state = 'queued';
    CREATE INDEX inbox_turn ON inbox (turn) WHERE state = 'claimed';

    CREATE TABLE outbox (
        id INTEGER PRIMARY KEY,
        session TEXT NOT NULL,
        turn TEXT NOT NULL,
        channel TEXT NOT NULL,
        account TEXT NOT NULL,
        chat TEXT NOT NULL,
        thread TEXT NOT NULL,
        kind TEXT NOT NULL,
        text TEXT NOT NULL,
        state TEXT NOT NULL,
        owner TEXT NOT NULL DEFAULT '',
        attempts INTEGER NOT NULL DEFAULT 0,
        created INTEGER NOT NULL,
        next_attempt INTEGER,
        expires INTEGER,
        platform_id TEXT NOT NULL DEFAULT '',
        idempotency TEXT NOT NULL UNIQUE,
        error TEXT NOT NULL DEFAULT ''
    );
    CREATE INDEX outbox_open ON outbox (channel, account, chat, id) WHERE state IN ('queued', 'attempting');

    CREATE TABLE usage (
        id TEXT PRIMARY KEY,
        session TEXT NOT NULL,
        turn TEXT NOT NULL,
        process TEXT NOT NULL,
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        state TEXT NOT NULL,
        at INTEGER NOT NULL,
        input INTEGER NOT NULL DEFAULT 0,
        output INTEGER NOT NULL DEFAULT 0,
        cache_read INTEGER NOT NULL DEFAULT 0,
        cache_write INTEGER NOT NULL DEFAULT 0,
        reasoning INTEGER NOT NULL DEFAULT 0,
        cost INTEGER
    ) WITHOUT ROWID;
    CREATE INDEX usage_open ON usage (process) WHERE state = 'open';
    CREATE INDEX usage_turn ON usage (turn);
    CREATE INDEX usage_session ON usage (session);
    CREATE INDEX usage_at ON usage (at);

    CREATE TABLE blobs (
        hash TEXT PRIMARY KEY,
        size INTEGER NOT NULL,
        created INTEGER NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    -- credentials and services of models that are left alone for a while after a failure
    CREATE TABLE rests (name TEXT PRIMARY KEY, until INTEGER NOT NULL, reason TEXT NOT NULL) WITHOUT ROWID;
    -- what an open request may cost at the most, so that budgets hold before the money is spent
    ALTER TABLE usage ADD COLUMN reserved INTEGER NOT NULL DEFAULT 0;
    -- how much a model may think in this conversation: off, low, medium, high, or empty for the settings
    ALTER TABLE sessions ADD COLUMN thinking TEXT NOT NULL DEFAULT '';
    """,
    """
    -- what an ended session was about, and how often its notes were begun while they are still to be written (0 = done)
    ALTER TABLE sessions ADD COLUMN summary TEXT NOT NULL DEFAULT '';
    ALTER TABLE sessions ADD COLUMN closing INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX sessions_closing ON sessions (key) WHERE closing > 0;
    """,
    """
    -- what services of models have taught: fields they refuse, the window they have
    CREATE TABLE learned (
        provider TEXT NOT NULL,
        base_url TEXT NOT NULL,
        model TEXT NOT NULL,
        refused TEXT NOT NULL,
        window INTEGER NOT NULL,
        reason TEXT NOT NULL,
        at INTEGER NOT NULL,
        PRIMARY KEY (provider, base_url, model, refused)
    ) WITHOUT ROWID;
    -- failed requests as they went over the wire, the newest few
    CREATE TABLE traces (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        at INTEGER NOT NULL,
        session TEXT NOT NULL,
        provider TEXT NOT NULL,
        model TEXT NOT NULL,
        status INTEGER NOT NULL,
        reason TEXT NOT NULL,
        size INTEGER NOT NULL,
        payload BLOB NOT NULL
    );
    -- whether a request was cut off, so that its tokens and cost are only estimated
    ALTER TABLE usage ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0;
    """,
    """
    -- the session with whose beginning a fork shares the provider's cache; how often something was erased in a session
    ALTER TABLE sessions ADD COLUMN cache_key TEXT NOT NULL DEFAULT '';
    ALTER TABLE sessions ADD COLUMN erasures INTEGER NOT NULL DEFAULT 0;
    -- up to which entry a session is in the search index
    ALTER TABLE sessions ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE spoken (id INTEGER PRIMARY KEY, session TEXT NOT NULL, seq INTEGER NOT NULL);
    CREATE UNIQUE INDEX spoken_place ON spoken (session, seq);
    CREATE VIRTUAL TABLE spoken_words USING fts5 (
        words, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
    );
    INSERT INTO spoken_words (spoken_words, rank) VALUES ('secure-delete', 1);
    -- what was erased or deleted for good, on whose word, and why
    CREATE TABLE removals (
        id INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        session TEXT NOT NULL,
        key TEXT NOT NULL,
        agent TEXT NOT NULL,
        entries INTEGER NOT NULL,
        why TEXT NOT NULL
    );
    -- when something that is done now and then was done last
    CREATE TABLE chores (name TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
    """,
    """
    -- what changed who may do what, and what was removed for good: a chain of hashes for each process
    CREATE TABLE audit (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        chain TEXT NOT NULL,
        seq INTEGER NOT NULL,
        at INTEGER NOT NULL,
        act TEXT NOT NULL,
        subject TEXT NOT NULL,
        detail TEXT NOT NULL,
        before TEXT NOT NULL,
        hash TEXT NOT NULL,
        UNIQUE (chain, seq)
    );
    """,
    """
    -- commands that outlast their call: number = that of its conversation, 0 = none; told = its end was told there
    CREATE TABLE processes (
        id TEXT PRIMARY KEY,
        key TEXT NOT NULL,
        session TEXT NOT NULL,
        owner TEXT NOT NULL,
        number INTEGER NOT NULL DEFAULT 0,
        command TEXT NOT NULL,
        pid INTEGER NOT NULL,
        birth TEXT NOT NULL,
        mark TEXT NOT NULL,
        started INTEGER NOT NULL,
        ended INTEGER NOT NULL DEFAULT 0,
        outcome TEXT NOT NULL DEFAULT '',
        tail TEXT NOT NULL DEFAULT '',
        told INTEGER NOT NULL DEFAULT 0
    ) WITHOUT ROWID;
    CREATE INDEX processes_key ON processes (key, number);
    CREATE INDEX processes_running ON processes (ended) WHERE ended = 0;
    """,
    """
    -- what waits for the owner's word, and what that was; `holds`: its turn waits for it
    CREATE TABLE approvals (
        id TEXT NOT NULL UNIQUE,
        session TEXT NOT NULL,
        key TEXT NOT NULL,
        turn TEXT NOT NULL,
        call TEXT NOT NULL,
        agent TEXT NOT NULL,
        hash TEXT NOT NULL,
        wanted BLOB NOT NULL,
        owner TEXT NOT NULL,
        process TEXT NOT NULL,
        created INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        holds INTEGER NOT NULL DEFAULT 0,
        outcome TEXT NOT NULL DEFAULT '',
        answer TEXT NOT NULL DEFAULT '',
        by TEXT NOT NULL DEFAULT '',
        at INTEGER NOT NULL DEFAULT 0,
        revoked INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX approvals_turn ON approvals (turn, call);
    CREATE INDEX approvals_grants ON approvals (agent, hash) WHERE outcome = 'always';
    CREATE INDEX approvals_open ON approvals (key) WHERE outcome = '';
    """,
    """
    -- what Limpet changed in memory files by itself; hunks = the lines before and after, for taking it back
    CREATE TABLE memory_changes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        at INTEGER NOT NULL,
        scope TEXT NOT NULL,
        source TEXT NOT NULL,
        key TEXT NOT NULL UNIQUE,
        hunks BLOB NOT NULL,
        undone INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX memory_changes_scope ON memory_changes (scope, id);

    -- entries of day notes that a consolidation has looked at, and how consolidations went
    CREATE TABLE memory_seen (scope TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (scope, id)) WITHOUT ROWID;
    CREATE TABLE memory_state (
        scope TEXT PRIMARY KEY,
        at INTEGER NOT NULL DEFAULT 0,
        failures INTEGER NOT NULL DEFAULT 0,
        not_before INTEGER NOT NULL DEFAULT 0,
        error TEXT NOT NULL DEFAULT ''
    ) WITHOUT ROWID;
    """,
    """
    -- the gateway: parts made of one reply share a place; body = what goes out, beside = files, buttons, what it
    -- answers; told: 1 = the owner knows how it ended, 2 = the conversation does
    ALTER TABLE outbox ADD COLUMN place INTEGER;
    ALTER TABLE outbox ADD COLUMN body BLOB;
    ALTER TABLE outbox ADD COLUMN beside BLOB;
    ALTER TABLE outbox ADD COLUMN told INTEGER NOT NULL DEFAULT 0;
    UPDATE outbox SET told = 3;
    CREATE INDEX outbox_untold ON outbox (session) WHERE told != 3 AND state IN ('failed', 'expired', 'unknown');
    CREATE INDEX outbox_arrived ON outbox (channel, account, chat, ifnull(place, id), id)
        WHERE state = 'sent' AND kind != 'preview';
    CREATE INDEX outbox_shown ON outbox (turn) WHERE kind IN ('preview', 'block');
    ALTER TABLE inbox ADD COLUMN message TEXT NOT NULL DEFAULT '';
    CREATE INDEX inbox_message ON inbox (key, message) WHERE state = 'queued' AND message != '';
    ALTER TABLE sessions ADD COLUMN queue TEXT NOT NULL DEFAULT '';

    -- who may speak; chat = the last chat of theirs with the agent alone
    CREATE TABLE peers (
        channel TEXT NOT NULL,
        account TEXT NOT NULL,
        id TEXT NOT NULL,
        role TEXT NOT NULL,
        name TEXT NOT NULL DEFAULT '',
        approved INTEGER NOT NULL,
        by TEXT NOT NULL DEFAULT '',
        chat TEXT NOT NULL DEFAULT '',
        seen INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (channel, account, id)
    ) WITHOUT ROWID;
    CREATE TABLE pairing_codes (
        code TEXT PRIMARY KEY,
        channel TEXT NOT NULL,
        account TEXT NOT NULL,
        peer TEXT NOT NULL,
        name TEXT NOT NULL DEFAULT '',
        chat TEXT NOT NULL,
        created INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        UNIQUE (channel, account, peer)
    ) WITHOUT ROWID;
    """,
    """
    -- jobs: since = slots up to then do not count, due = the next slot that is not in the ledger
    CREATE TABLE jobs (
        id TEXT PRIMARY KEY,
        agent TEXT NOT NULL,
        name TEXT NOT NULL,
        state TEXT NOT NULL,
        since INTEGER NOT NULL,
        due INTEGER,
        failures INTEGER NOT NULL DEFAULT 0,
        reason TEXT NOT NULL DEFAULT '',
        created INTEGER NOT NULL,
        payload BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX jobs_name ON jobs (agent, name);
    CREATE INDEX jobs_due ON jobs (due) WHERE due IS NOT NULL;

    -- the ledger: what became of each slot; upto, count = one row for several missed ones; next = when it may begin,
    -- or has to be over
    CREATE TABLE occurrences (
        job TEXT NOT NULL,
        due INTEGER NOT NULL,
        state TEXT NOT NULL,
        upto INTEGER NOT NULL,
        count INTEGER NOT NULL DEFAULT 1,
        attempt INTEGER NOT NULL DEFAULT 0,
        next INTEGER NOT NULL DEFAULT 0,
        inbox INTEGER NOT NULL DEFAULT 0,
        turn TEXT NOT NULL DEFAULT '',
        begun INTEGER NOT NULL DEFAULT 0,
        ended INTEGER NOT NULL DEFAULT 0,
        reason TEXT NOT NULL DEFAULT '',
        manual INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (job, due)
    ) WITHOUT ROWID;
    CREATE INDEX occurrences_waiting ON occurrences (next) WHERE state = 'waiting';
    CREATE INDEX occurrences_running ON occurrences (next) WHERE state IN ('claimed', 'started');
    CREATE INDEX outbox_turn ON outbox (turn) WHERE turn != '';
    CREATE INDEX occurrences_ended ON occurrences (ended) WHERE ended > 0;
    """,
    """
    -- helpers (subagents): errand = what was given (JSON), told = the parent knows how it ended
    CREATE TABLE helpers (
        id TEXT NOT NULL UNIQUE,
        key TEXT NOT NULL UNIQUE,
        parent TEXT NOT NULL,
        session TEXT NOT NULL,
        agent TEXT NOT NULL,
        state TEXT NOT NULL DEFAULT 'waiting',
        created INTEGER NOT NULL,
        ended INTEGER,
        answer TEXT NOT NULL DEFAULT '',
        told INTEGER NOT NULL DEFAULT 0,
        errand BLOB NOT NULL
    );
    CREATE INDEX helpers_open ON helpers (parent) WHERE ended IS NULL;
    CREATE INDEX helpers_untold ON helpers (parent) WHERE told = 0;
    """,
    """
    -- what happened elsewhere and a heartbeat is to look at: soon = now, taken = when one did (0 = it waits)
    CREATE TABLE wakes (
        id INTEGER PRIMARY KEY,
        event TEXT NOT NULL UNIQUE,
        agent TEXT NOT NULL,
        at INTEGER NOT NULL,
        source TEXT NOT NULL,
        text TEXT NOT NULL,
        trust TEXT NOT NULL,
        soon INTEGER NOT NULL,
        taken INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX wakes_waiting ON wakes (id) WHERE taken = 0;
    """,
    """
    -- what programs show at the API: hash = SHA-256 of the secret part, expires and used in ms (0 = never);
    -- threads = names under which they go on with what they began
    CREATE TABLE api_tokens (
        name TEXT PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        hash BLOB NOT NULL,
        scopes TEXT NOT NULL,
        agent TEXT NOT NULL,
        created INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        used INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE api_threads (
        token TEXT NOT NULL,
        name TEXT NOT NULL,
        session TEXT NOT NULL,
        payload BLOB NOT NULL,
        expires INTEGER NOT NULL,
        PRIMARY KEY (token, name)
    ) WITHOUT ROWID;
    CREATE INDEX api_threads_expires ON api_threads (expires);
    """,
)

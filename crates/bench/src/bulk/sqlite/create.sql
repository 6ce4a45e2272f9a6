-- Members, and the notes that a bulk job creates for them.
CREATE TABLE milepost_bench_member (id INTEGER PRIMARY KEY, place INTEGER NOT NULL, name TEXT NOT NULL);
CREATE TABLE milepost_bench_note (
    run TEXT NOT NULL, member INTEGER NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (run, member)
) WITHOUT ROWID;

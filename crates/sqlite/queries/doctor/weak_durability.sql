-- Settings with which a crash of the machine can lose or damage committed data. Run on the connection that writes.
SELECT count(*) OVER () AS count, what, detail
FROM (
    SELECT 'journal_mode' AS what, 'is ' || journal_mode || ', not wal' AS detail FROM pragma_journal_mode
    WHERE journal_mode <> 'wal'
    UNION ALL
    SELECT 'synchronous', 'is ' || synchronous || ', not FULL' FROM pragma_synchronous WHERE synchronous < 2
)
LIMIT 10

-- Returns a page of the audit log, newest first. ?1 who, ?2 what, ?3 subject, each NULL for any; ?4 before this position, ?5 how many.
-- Exactly one branch returns rows: the one whose index is the most selective for the given filters.
SELECT * FROM (
    SELECT pos, at_ms, who, what, subject, why, detail FROM milepost_audit
      INDEXED BY milepost_audit_subject
    WHERE subject = ?3 AND (?1 IS NULL OR who = ?1) AND (?2 IS NULL OR what = ?2) AND pos < ?4
    ORDER BY pos DESC LIMIT ?5)
UNION ALL
SELECT * FROM (
    SELECT pos, at_ms, who, what, subject, why, detail FROM milepost_audit
      INDEXED BY milepost_audit_who_what
    WHERE ?3 IS NULL AND who = ?1 AND what = ?2 AND pos < ?4
    ORDER BY pos DESC LIMIT ?5)
UNION ALL
SELECT * FROM (
    SELECT pos, at_ms, who, what, subject, why, detail FROM milepost_audit
      INDEXED BY milepost_audit_who
    WHERE ?3 IS NULL AND ?2 IS NULL AND who = ?1 AND pos < ?4
    ORDER BY pos DESC LIMIT ?5)
UNION ALL
SELECT * FROM (
    SELECT pos, at_ms, who, what, subject, why, detail FROM milepost_audit
      INDEXED BY milepost_audit_what
    WHERE ?3 IS NULL AND ?1 IS NULL AND what = ?2 AND pos < ?4
    ORDER BY pos DESC LIMIT ?5)
UNION ALL
SELECT * FROM (
    SELECT pos, at_ms, who, what, subject, why, detail FROM milepost_audit
    WHERE ?3 IS NULL AND ?2 IS NULL AND ?1 IS NULL AND pos < ?4
    ORDER BY pos DESC LIMIT ?5)

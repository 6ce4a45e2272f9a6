-- Begins an incident for each alert that has none, and renews the others. In the order of their keys, so that two servers do not wait for each
-- other. $1 new ids, $2 rules, $3 subjects, $4 severities, $5 titles, $6 words, $7 commands
insert into milepost.alert_incident as i (id, rule, subject, severity, title, words, command)
select distinct on (a.rule, a.subject) a.* from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
    a (id, rule, subject, severity, title, words, command)
order by a.rule, a.subject
on conflict (rule, subject) where ended_at is null do update
set severity = excluded.severity, title = excluded.title, words = excluded.words, command = excluded.command,
    last_seen_at = greatest(i.last_seen_at, now())

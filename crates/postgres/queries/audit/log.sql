-- A page of the audit log, newest first: $1 who, $2 what, $3 subject, each null for any; $4 before this entry, $5 limit.
-- Only one of the parts returns rows: the one whose index contains few other rows.
(select pos, at, who, what, subject, why, detail::text as detail from milepost.audit
 where subject = $3::text and ($1::text is null or who = $1) and ($2::text is null or what = $2) and pos < $4
 order by pos desc limit $5)
union all
(select pos, at, who, what, subject, why, detail::text as detail from milepost.audit
 where $3 is null and who = $1 and what = $2 and pos < $4
 order by pos desc limit $5)
union all
(select pos, at, who, what, subject, why, detail::text as detail from milepost.audit
 where $3 is null and $2 is null and who = $1 and pos < $4
 order by pos desc limit $5)
union all
(select pos, at, who, what, subject, why, detail::text as detail from milepost.audit
 where $3 is null and $1 is null and what = $2 and pos < $4
 order by pos desc limit $5)
union all
(select pos, at, who, what, subject, why, detail::text as detail from milepost.audit
 where $3 is null and $2 is null and $1 is null and pos < $4
 order by pos desc limit $5)

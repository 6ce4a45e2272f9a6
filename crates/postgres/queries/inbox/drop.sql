-- Deletes dead letters $1. The caller records it in the audit log.
select cardinality(milepost.drop_letters($1))::bigint

-- Makes the events of dead letters $1 wait again. The caller records it in the audit log.
select cardinality(milepost.retry_letters($1))::bigint

insert into notification (run, member_id, text)
  select :bulk_id, member_id, 'Dear ' || name || ', ' || :text from chunk
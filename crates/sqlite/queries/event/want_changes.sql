-- Has a subscription (?1) want changes of jobs of a kind (?2 'kind') or of batches of a DAG ('dag'): ?3
INSERT INTO milepost_change_source (subscription, what, name) VALUES (?1, ?2, ?3)
ON CONFLICT DO NOTHING

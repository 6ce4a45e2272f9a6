-- Requests changes for a subscription (?1): of jobs of a kind (?2 'kind') or of batches of a DAG ('dag'), with name ?3
INSERT INTO milepost_change_source (subscription, what, name) VALUES (?1, ?2, ?3)
ON CONFLICT DO NOTHING

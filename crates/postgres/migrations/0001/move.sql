-- Imports: the move that fills this store from another one, or has filled it. While a move is in progress, triggers refuse
-- all other changes to the other tables; they are created with its row and dropped when it ends.
create table milepost.arrival (
    move_id uuid primary key,
    source text not null,
    began_at timestamptz not null default now(),
    completed_at timestamptz
);

-- Progress of each part of a move, written in the transaction that inserts the rows. position: the key of the last row, as
-- JSON.
create table milepost.arrival_part (
    move_id uuid not null,
    part text not null,
    position text not null,
    rows bigint not null,
    done boolean not null,
    primary key (move_id, part)
);

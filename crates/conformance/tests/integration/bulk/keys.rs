//! Keys of all types.

use milepost::JobState;
use milepost::bulk::{Definition, Sizing};
use milepost_postgres::PostgresOptions;
use milepost_testkit::home::{Home, PostgresHome};
use milepost_testkit::notes;

use crate::bulk::members::Members;

/// Returns a definition with chunks of two rows, so that every second key is the cursor.
fn by_twos(name: &str) -> Definition {
    let sizing = Sizing { rows_min: 2, rows_max: 2, ..Sizing::default() };
    Definition { sizing, failures_max: 100, ..notes::definition(name, 2) }
}

/// Processes a table with keys of this type in chunks of two while one key fails; then retries that key after it can succeed.
async fn go_through(members: &Members, name: &str, column: &str, keys: &[String]) {
    let barred = &keys[keys.len() / 2];
    let values = keys.iter().map(|key| format!("({key})")).collect::<Vec<_>>().join(", ");
    members
        .home
        .tamper(&format!(
            "create table public.key_{name} (k {column}); create unique index key_{name}_k on public.key_{name} (k);
             create table public.barred_{name} (k {column}); create table public.seen_{name} (word text, ok int not null);
             insert into public.key_{name} values {values}; insert into public.barred_{name} values ({barred})"
        ))
        .await;
    let source = format!("select k from key_{name} where k > :cursor order by k limit :limit");
    let apply = format!(
        "insert into seen_{name} select cast(k as text),
             case when not exists (select 1 from barred_{name} b where b.k = chunk.k) then 1 end from chunk"
    );
    let bulk = members.home.bulk(by_twos(name), &source, &["k"], &apply).unwrap();
    bulk.check().await.unwrap_or_else(|error| panic!("{name}: {error}"));
    let view = members.run(&bulk).await;
    let all = keys.len() as u64;
    assert_eq!(
        (view.state, view.counts.done, view.counts.failed),
        (JobState::Succeeded, all - 1, 1),
        "{name}: {view:#?}"
    );

    members.home.tamper(&format!("delete from public.barred_{name}")).await;
    let again = members.store().retry_bulk_failures(view.id).await.unwrap().job;
    let view = members.drain(&bulk, again).await;
    assert_eq!(
        (view.state, view.counts.done, view.counts.failed),
        (JobState::Succeeded, 1, 0),
        "{name}: {view:#?}"
    );
    let missed = format!(
        "select count(*) from public.key_{name} where cast(k as text) not in (select word from public.seen_{name})"
    );
    assert_eq!(members.home.count(&missed).await, 0, "{name}");
    assert_eq!(
        members.home.count(&format!("select count(*) from public.seen_{name}")).await,
        all as i64,
        "{name}"
    );
}

fn owned(keys: &[&str]) -> Vec<String> {
    keys.iter().map(|&key| key.to_owned()).collect()
}

pub(crate) async fn each_sort_of_key_leads_through_all_targets(members: Members) {
    let mut random = fastrand::Rng::with_seed(7);
    let reals: Vec<f64> =
        (0..60).map(|_| f64::from_bits(random.u64(..))).filter(|real| real.is_finite()).collect();
    let reals: Vec<String> = reals.iter().map(|real| format!("{real:e}")).collect();
    let whole = ["-9223372036854775808", "-1", "0", "7", "9223372036854775807"];
    go_through(&members, "whole", "bigint", &owned(&whole)).await;
    if members.is_sqlite() {
        go_through(&members, "real", "real", &[reals, owned(&["9e999", "-9e999", "0.1", "1e16"])].concat())
            .await;
        go_through(&members, "blob", "blob", &owned(&["x''", "x'00'", "x'ff00'", "x'61'", "x'7b7d'"])).await;
        go_through(&members, "mixed", "", &owned(&["-1", "0.5", "1", "'1'", "'a'", "x'31'", "x'00'"])).await;
        let broken = ["cast(x'61ff' as text)", "cast(x'ff' as text)", "'a'", "'ÿ'"];
        go_through(&members, "broken", "text", &owned(&broken)).await;
        go_through(&members, "folded", "text collate nocase", &owned(&["'a'", "'B'", "'c'", "'D'", "'e'"]))
            .await;
        return;
    }
    let text = |of: &str, keys: &[&str]| keys.iter().map(|key| format!("'{key}'::{of}")).collect::<Vec<_>>();
    let reals = reals.iter().map(|real| format!("'{real}'::float8")).collect::<Vec<_>>();
    let ends = text("float8", &["Infinity", "-Infinity", "NaN", "0.1", "1e16"]);
    go_through(&members, "real", "float8", &[reals, ends].concat()).await;
    let numbers = ["-1", "0.1", "1e-30", "12345678901234567890.123", "NaN", "99999999999999999999999"];
    go_through(&members, "number", "numeric", &text("numeric", &numbers)).await;
    let uuids: Vec<String> =
        (0..9).map(|_| format!("'{}'::uuid", uuid::Uuid::from_u128(random.u128(..)))).collect();
    go_through(&members, "uuid", "uuid", &uuids).await;
    let times = [
        "-infinity",
        "2026-03-29 02:30:00.000001+02",
        "2026-03-29 02:30:00.000002+02",
        "0044-03-15 BC",
        "infinity",
    ];
    go_through(&members, "time", "timestamptz", &text("timestamptz", &times)).await;
    go_through(&members, "day", "date", &text("date", &["2026-01-01", "2026-01-02", "1999-12-31"])).await;
    go_through(&members, "fixed", "char(5)", &text("char(5)", &["ab", "abc", "abcd", "abcde", ""])).await;
    go_through(&members, "short", "varchar(3)", &text("varchar", &["ab", "abc", "b", "", "ü"])).await;
    go_through(&members, "bytes", "bytea", &text("bytea", &["\\x", "\\x00", "\\xff00", "\\x61"])).await;
    members.home.tamper("create type public.colour as enum ('red', 'Green', 'a b')").await;
    go_through(&members, "colour", "public.colour", &text("public.colour", &["red", "Green", "a b"])).await;
    go_through(&members, "truth", "boolean", &owned(&["false", "true"])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_arrays_lead_through_all_targets_although_the_database_reads_null_as_text() {
    let fresh = PostgresHome::fresh().await;
    let set =
        "do $$ begin execute format('alter database %I set array_nulls = off', current_database()); end $$";
    fresh.tamper(set).await;
    let members = Members::on(PostgresHome::open(&fresh.address(), PostgresOptions::default()).await).await;
    let keys = ["array[]", "array[1,null]", "array[1,2]", "array[null]", "array[null,1]", "array[2,null,3]"];
    let keys: Vec<String> = keys.iter().map(|key| format!("{key}::integer[]")).collect();
    go_through(&members, "list", "integer[]", &keys).await;
}

pub(crate) async fn a_key_that_is_text_of_any_sort_leads_through_all_targets(members: Members) {
    let words = [
        "",
        " ",
        "''",
        "\"",
        "\\",
        "a",
        "A",
        "ä",
        "日本",
        "🦀",
        "\n\t",
        ":cursor",
        "{\"$blob\":\"00\"}",
        "1",
        "01",
        "null",
    ];
    let keys: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    go_through(&members, "word", "text", &keys).await;
}

pub(crate) async fn targets_of_one_key_are_never_torn_apart(members: Members) {
    members
        .home
        .tamper(
            "create table public.visit (place bigint not null, who text not null);
             create index visit_place on public.visit (place);
             create table public.seen (place bigint, who text, ok int not null)",
        )
        .await;
    let visits: Vec<String> =
        (0..40).flat_map(|place| (0..=place % 5).map(move |who| format!("({place}, 'w{who}')"))).collect();
    members.home.tamper(&format!("insert into public.visit values {}", visits.join(", "))).await;
    let source = "select place, who from visit where place > :cursor order by place limit :limit";
    let apply = "insert into seen select place, who, case when place = 19 and who = 'w2' then null else 1 end from chunk";
    let bulk = members.home.bulk(by_twos("visits"), source, &["place"], apply).unwrap();
    let view = members.run(&bulk).await;
    let (all, together) = (visits.len() as u64, 5);
    assert_eq!(
        (view.state, view.counts.done, view.counts.failed),
        (JobState::Succeeded, all - together, 1),
        "{view:#?}"
    );
    assert_eq!(members.failed(view.id).await, ["19"], "targets of one key fail together");
    assert_eq!(members.home.count("select count(*) from public.seen").await, (all - together) as i64);
    let distinct = "select count(*) from (select distinct place, who from public.seen) as each";
    assert_eq!(members.home.count(distinct).await, (all - together) as i64);

    members.home.tamper("update public.visit set who = 'w9' where place = 19 and who = 'w2'").await;
    let again = members.store().retry_bulk_failures(view.id).await.unwrap().job;
    let view = members.drain(&bulk, again).await;
    assert_eq!((view.counts.done, view.counts.failed), (together, 0));
    assert_eq!(members.home.count("select count(*) from public.seen").await, all as i64);
}

pub(crate) async fn a_composite_key_with_nulls_in_it_is_no_target(members: Members) {
    members
        .home
        .tamper(
            "create table public.seat (\"Row\" text, nr bigint); create index seat_row on public.seat (\"Row\", nr);
             create table public.seen (line text, nr bigint)",
        )
        .await;
    let rows: Vec<String> = (0..30)
        .map(|nr| format!("('r{}', {nr})", nr % 4))
        .chain((0..4).flat_map(|line| [format!("('r{line}', null)"), format!("(null, {line})")]))
        .collect();
    members.home.tamper(&format!("insert into public.seat values {}", rows.join(", "))).await;
    let source = "select s.\"Row\", s.nr from seat s where (s.\"Row\", s.nr) > :cursor order by s.\"Row\", s.nr limit :limit";
    let apply = "insert into seen select \"Row\", nr from chunk";
    let bulk = members.home.bulk(by_twos("seats"), source, &["Row", "nr"], apply).unwrap();
    bulk.check().await.unwrap();
    let view = members.run(&bulk).await;
    assert_eq!((view.state, view.counts.done), (JobState::Succeeded, 30), "{view:#?}");
    assert_eq!(members.home.count("select count(distinct nr) from public.seen").await, 30);
    assert_eq!(members.home.count("select count(*) from public.seen").await, 30);
}

pub(crate) async fn a_source_that_does_not_move_on_is_stopped(members: Members) {
    members.add(0..100).await;
    // Only a subquery uses the cursor, so it does not restrict the rows that are returned.
    let source = "select id, place, name from member where exists (select 1 from member m where m.id > :cursor) \
                  or id < 3 order by id limit :limit";
    let inner = "select id, place, name from member where id in (select id from member where id > :cursor) \
                 or id < 3 order by id limit :limit";
    for source in [source, inner] {
        let Ok(bulk) = members.home.bulk(by_twos("stuck"), source, &["id"], notes::APPLY) else { continue };
        let view = members.run(&bulk).await;
        assert_ne!(view.state, JobState::Succeeded, "{view:#?}");
        assert_eq!(view.counts.chunks, 1, "{view:#?}");
        let why = members.scene.history(view.id).await.last().unwrap().error_message.clone().unwrap();
        assert!(why.contains("does not advance: after the key 1 it returned"), "{why}");
        assert_eq!(members.notes(view.id).await, 2, "no target was processed twice");
        members.operate(view.id, milepost::Verb::Cancel).await;
    }
}

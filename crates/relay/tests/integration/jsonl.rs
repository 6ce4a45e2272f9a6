//! Tests of the JSON lines sink.

use crate::common;

use std::fs;
use std::path::Path;

use milepost_core::event::Event;
use milepost_relay::sink::Delivery;

fn settings(path: &Path) -> String {
    format!("type = \"jsonl\"\npath = \"{}\"\n", path.display())
}

fn read(path: &Path) -> Vec<Event> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_is_a_line_with_its_payload_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let sink = common::open(&settings(&path));
    let mut sent = common::events("order", 2_000);
    sent[5].payload = common::event("order", "5", "{ \"z\":1, \"a\" : 1.10, \"e\":\"\\u00fc ü\" }").payload;
    common::publish_all(&*sink, &sent).await;
    for (sent, read) in sent.iter().zip(read(&path)) {
        assert_eq!((sent.id, &sent.aggregate, &sent.headers), (read.id, &read.aggregate, &read.headers));
        assert_eq!(sent.payload.get(), read.payload.get());
    }
    common::publish_all(&*sink, &common::events("order", 1)).await;
    assert_eq!(read(&path).len(), 2_001, "the event was appended");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_of_many_lines_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    common::publish_all(
        &*common::open(&settings(&path)),
        &[common::event("order", "1", "{\n  \"a\": 1\r\n}")],
    )
    .await;
    assert_eq!(read(&path)[0].payload.get(), "{   \"a\": 1  }");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_was_renamed_or_removed_is_followed_by_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let [path, first] = ["events.jsonl", "events.1"].map(|name| folder.path().join(name));
    let sink = common::open(&settings(&path));
    common::publish_all(&*sink, &common::events("order", 3)).await;
    fs::rename(&path, &first).unwrap();
    common::publish_all(&*sink, &common::events("order", 2)).await;
    assert_eq!((read(&first).len(), read(&path).len()), (3, 2));
    fs::remove_file(&path).unwrap();
    common::publish_all(&*sink, &common::events("order", 1)).await;
    assert_eq!(read(&path).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_a_crash_left_half_written_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    common::publish_all(&*common::open(&settings(&path)), &common::events("order", 3)).await;
    let whole = fs::read(&path).unwrap();
    for half in ["{\"event_id\":\"01".to_owned(), "x".repeat(200_000)] {
        fs::write(&path, [&whole[..], half.as_bytes()].concat()).unwrap();
        common::publish_all(&*common::open(&settings(&path)), &common::events("order", 1)).await;
        assert_eq!(read(&path).len(), 4);
    }
    fs::write(&path, "{\"event_").unwrap();
    common::publish_all(&*common::open(&settings(&path)), &common::events("order", 1)).await;
    assert_eq!(read(&path).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_another_program_has_written_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs");
    for content in
        ["a note without an end", "[relay]\nname = 1", "SQLite format 3\0\0\x10", "{\"id\": 1}\n{\"id\""]
    {
        fs::write(&path, content).unwrap();
        let down = common::open(&settings(&path)).publish(&common::events("order", 1)).await.unwrap_err();
        assert!(down.to_string().contains("another program has written the file"), "{down}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_too_long_is_unacceptable_and_the_others_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.jsonl");
    let sink = common::open(&(settings(&path) + "line_bytes_max = 1000"));
    let sent = [common::event("a", "1", "1"), common::event("a", "2", &format!("\"{}\"", "x".repeat(1_000)))];
    let deliveries = sink.publish(&sent).await.unwrap();
    assert!(
        matches!(&deliveries[..], [Delivery::Acknowledged, Delivery::Unacceptable { why }] if why.contains("`line_bytes_max` is 1000")),
        "{deliveries:?}"
    );
    assert_eq!(read(&path).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_written_or_is_anothers_takes_nothing_until_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("later/events.jsonl");
    let sink = common::open(&settings(&path));
    let down = sink.publish(&common::events("order", 1)).await.unwrap_err();
    assert!(down.place.contains("later/events.jsonl") && !down.for_good, "{down}");
    fs::create_dir(folder.path().join("later")).unwrap();
    common::publish_all(&*sink, &common::events("order", 1)).await;
    let other = common::open(&settings(&path));
    let down = other.publish(&common::events("order", 1)).await.unwrap_err();
    assert!(down.why.contains("another process"), "{down}");
    drop(sink);
    common::publish_all(&*other, &common::events("order", 1)).await;
    assert_eq!(read(&path).len(), 2);
}

#[tokio::test]
async fn the_null_sink_takes_everything() {
    common::publish_all(&*common::open("type = \"null\""), &common::events("order", 10)).await;
}

#[test]
fn unknown_settings_and_sinks_are_told() {
    let why = |text: &str| toml::from_str::<milepost_relay::sink::SinkConfig>(text).unwrap_err().to_string();
    assert!(why("type = \"null\"\nurl = \"x\"").contains("unknown field"));
    assert!(why("type = \"nats\"\nurl = \"x\"\nsubjects = \"x\"").contains("subjects"));
    assert!(why("type = \"carrier-pigeon\"").contains("rabbitmq"));
}

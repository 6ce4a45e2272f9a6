//! A store with all kinds of content.

use super::Place;

const CONFIG: &str = r#"
[kinds.mail]
exec = { program = "false" }
[batch.chain]
file = "chain.toml"
[[schedules]]
name = "nightly"
cron = "0 3 * * *"
kind = "mail"
[subscription.all]
jsonl = { path = "events.jsonl" }
[subscription.copy]
jsonl = { path = "copy.jsonl" }
[bulk.popular]
source = "select id from member where topic = :topic and id > :cursor order by id limit :limit"
key = ["id"]
apply = "insert into note (run, member) select :bulk_id, id from chunk"
"#;
const CHAIN: &str = "name = \"chain\"\ntasks.first = { kind = \"other\" }\ntasks.second = { kind = \"other\", after = [\"first\"] }\n";

/// The ids of the content. Items of the configuration exist once a process with it has run; the job and the bulk job have ended by then.
pub(crate) struct Filled {
    /// A job that fails.
    pub(crate) job: String,
    pub(crate) bulk: String,
    /// A batch whose tasks no worker runs.
    pub(crate) batch: String,
}

impl Filled {
    pub(crate) fn of(place: &Place) -> Self {
        place.write("milepost.toml", CONFIG);
        place.write("chain.toml", CHAIN);
        place.run(&["batch", "define", "chain.toml"]).ok();
        place.tamper("create table member (id bigint primary key, topic bigint not null)");
        place.tamper("create table note (run text not null, member bigint not null)");
        place.tamper("insert into member values (1, 1), (2, 1)");
        let job = place.enqueue(&["--max-attempts", "1"]);
        place.run(&["events", "emit", "order", "17", "order.paid"]).ok();
        place.run(&["limits", "set", "--kind", "report", "--rate", "1/h"]).ok();
        let id = |args: &[&str], field: &str| place.run(args).json()[field].as_str().unwrap().to_owned();
        let bulk = id(&["bulk", "start", "popular", "--param", "topic=1", "--json"], "job");
        let batch = id(&["batch", "start", "chain", "--json"], "batch");
        Self { job, bulk, batch }
    }
}

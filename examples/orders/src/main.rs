//! Runs the example: `example-orders [STORE] [BROKER]`. Exit status 0: both consumers have the expected results.

use std::io::Write;

use anyhow::{Result, ensure};
use example_orders::{Broker, Report, Shop, run};

#[tokio::main]
async fn main() -> Result<()> {
    tracing_subscriber::fmt().with_env_filter("error").with_writer(std::io::stderr).init();
    let mut args = std::env::args().skip(1);
    let store = args.next().unwrap_or_else(|| "sqlite:orders.db".to_owned());
    let broker = args.next().unwrap_or_else(|| "orders.jsonl".to_owned());
    let shop = Shop::open(&store).await?;
    let report = run(&shop, &Broker::at(&broker)).await?;
    tell(&report)?;
    ensure!(report.books.balance(), "the results of the consumers are wrong");
    Ok(())
}

fn tell(report: &Report) -> Result<()> {
    let books = &report.books;
    let ((placed, paid, cents), (known, packed), (counted, earned)) =
        (books.orders, books.shipping, books.statistics);
    let mut out = std::io::stdout().lock();
    writeln!(out, "orders       {placed} placed, {paid} paid, {cents} cents")?;
    writeln!(out, "shipping     {known} known, {packed} packed")?;
    writeln!(out, "statistics   {counted} counted, {earned} cents")?;
    writeln!(out, "replayed     {} events", report.replayed)?;
    for (consumer, duplicates) in &report.duplicates {
        writeln!(out, "duplicates   {duplicates} caught by {consumer}")?;
    }
    Ok(())
}

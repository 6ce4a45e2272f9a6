//! Tests of traces: one trace leads from a request through its job's attempt to the event that it emits, and is sent to a collector with
//! OTLP.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::support::process::Process;
use crate::support::{Place, on_each_store, until};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::Value;

on_each_store! {
    a_trace_goes_from_a_request_to_an_attempt_to_an_event,
    a_trace_is_carried_on_by_who_records_nothing,
    a_collector_that_is_not_there_keeps_nothing_from_running,
    a_collector_that_cannot_be_is_refused,
}

/// The trace of the client, from the example of the specification.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CLIENT: &str = "00f067aa0ba902b7";

/// Configures a program that emits an event, as a user's program would.
fn configure(place: &Place) {
    let emit = concat!(env!("CARGO_BIN_EXE_milepost"), " events emit order 17 order.paid >&2");
    let file = format!(
        "[kinds.pay]\nexec = {{ program = \"sh\", args = [\"-c\", \"{emit}\"], env = {{ MILEPOST_STORE = \"{}\" }} }}\n",
        place.store
    );
    place.write("milepost.toml", file);
}

/// Starts a collector; returns its address and the received spans.
fn collector() -> (String, Receiver<(String, Span)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, spans) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            collect(stream.unwrap(), &sender);
        }
    });
    (format!("http://{address}"), spans)
}

/// Reads one request, and answers it after its spans are stored: the client may exit as soon as it has the response.
fn collect(mut stream: TcpStream, spans: &Sender<(String, Span)>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut line, mut bytes) = (String::new(), 0);
    reader.read_line(&mut line).unwrap();
    assert!(line.starts_with("POST /v1/traces "), "{line}");
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).unwrap();
        if let Some(length) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            bytes = length.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; bytes];
    reader.read_exact(&mut body).unwrap();
    let request = ExportTraceServiceRequest::decode(body.as_slice()).unwrap();
    for of_resource in request.resource_spans {
        let attributes = of_resource.resource.unwrap().attributes;
        let name = attributes.iter().find(|attribute| attribute.key == "service.name").unwrap();
        let service = format!("{:?}", name.value);
        let found = of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        found.for_each(|span| drop(spans.send((service.clone(), span))));
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Starts a server that also runs jobs.
fn serve(place: &Place, collector: Option<&str>) -> (Process, String) {
    configure(place);
    let mut command = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.envs(collector.map(|collector| ("OTEL_EXPORTER_OTLP_ENDPOINT", collector)));
    let mut server = Process::spawn(&mut command);
    let address = server.address();
    (server, address)
}

/// Creates a job within the client's span; returns its id.
fn create(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let body = r#"{"kind": "pay"}"#;
    write!(
        stream,
        "POST /v1/jobs HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\ntraceparent: 00-{TRACE}-{CLIENT}-01\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let body = answer.split("\r\n\r\n").nth(1).unwrap();
    let made: Value = serde_json::from_str(body).unwrap();
    made["id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn until_done(place: &Place, job: &str) -> Value {
    until(&format!("job {job} is done"), || {
        let view = place.job(job);
        if view["state"] == "succeeded" { Ok(view) } else { Err(view.to_string()) }
    })
}

/// Returns the `traceparent` of the only event.
fn of_event(place: &Place) -> String {
    let events = place.run(&["events", "tail", "--json"]).json();
    events[0]["headers"]["traceparent"].as_str().unwrap_or_else(|| panic!("{events}")).to_owned()
}

fn a_trace_goes_from_a_request_to_an_attempt_to_an_event(place: Place) {
    let (endpoint, spans) = collector();
    let (server, address) = serve(&place, Some(&endpoint));
    let job = create(&address);
    let traceparent = until_done(&place, &job)["traceparent"].as_str().unwrap().to_owned();
    // The remaining spans are sent when the server stops.
    server.leave();
    let sent: Vec<(String, Span)> = spans.try_iter().collect();
    let the = |name: &str| {
        let mut found = sent.iter().filter(|(_, span)| span.name == name).map(|(_, span)| span);
        let span = found.next().unwrap_or_else(|| panic!("no {name} in {sent:#?}"));
        assert!(found.next().is_none(), "one {name}");
        assert_eq!(hex(&span.trace_id), TRACE);
        span
    };
    let (request, attempt) = (the("POST /v1/jobs"), the("pay"));
    assert_eq!(hex(&request.parent_span_id), CLIENT, "the request is the client's");
    assert_eq!(traceparent, format!("00-{TRACE}-{}-01", hex(&request.span_id)));
    assert_eq!(attempt.parent_span_id, request.span_id, "the attempt is the request's");
    assert_eq!(
        of_event(&place),
        format!("00-{TRACE}-{}-01", hex(&attempt.span_id)),
        "the event is the attempt's"
    );
    assert!(sent.iter().all(|(service, _)| service.contains("milepost")), "{sent:#?}");
}

fn a_trace_is_carried_on_by_who_records_nothing(place: Place) {
    let (_server, address) = serve(&place, None);
    let job = create(&address);
    let client = format!("00-{TRACE}-{CLIENT}-01");
    assert_eq!(until_done(&place, &job)["traceparent"], client);
    assert_eq!(of_event(&place), client);
}

fn a_collector_that_is_not_there_keeps_nothing_from_running(place: Place) {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (server, address) = serve(&place, Some(&format!("http://{nobody}")));
    until_done(&place, &create(&address));
    server.leave();
}

fn a_collector_that_cannot_be_is_refused(place: Place) {
    configure(&place);
    for (name, value, why) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "OTEL_EXPORTER_OTLP_ENDPOINT"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "this program sends http/protobuf"),
    ] {
        let mut command = place.command(&["work"]);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318").env(name, value);
        let output = command.output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(why), "{told}");
    }
}

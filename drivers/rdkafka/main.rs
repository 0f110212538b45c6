//! The driver of rdkafka. Transactions are left out.
mod admin;
mod consumer;
mod library;
mod lines;

use admin::administer;
use consumer::consume;
use library::{configuration, Context, ASSIGNORS, CODECS, NAMES};
use lines::{bytes, field, json, serve, text, Done, Task, Value};
use rdkafka::admin::AdminClient;
use rdkafka::consumer::BaseConsumer;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use std::time::Duration;

fn append(producer: &BaseProducer<Context>, task: Task) {
    let c = task.command.clone();
    let prepared = || -> Done<_> {
        let mut headers = OwnedHeaders::new();
        for one in c["headers"].as_array().into_iter().flatten() {
            let row = json!({"name": one[0], "value": one[1]});
            headers =
                headers.insert(Header { key: text(&row, "name")?, value: bytes(&row, "value")?.as_ref() });
        }
        let partition =
            field(&c, "partition", |one| if one.is_null() { Some(None) } else { one.as_i64().map(Some) })?;
        Ok((text(&c, "topic")?, partition, bytes(&c, "key")?, bytes(&c, "value")?, headers))
    };
    let (topic, partition, key, value, headers) = match prepared() {
        Ok(all) => all,
        Err(fail) => return task.done(Err(fail)),
    };
    let mut record = BaseRecord::with_opaque_to(topic, Box::new(task)).headers(headers);
    (record.partition, record.timestamp) = (partition.map(|one| one as i32), c["timestamp_ms"].as_i64());
    (record.key, record.payload) = (key.as_ref(), value.as_ref());
    if let Err((error, record)) = producer.send(record) {
        record.delivery_opaque.done(Err(error.into()));
    }
    producer.poll(Duration::ZERO);
}

enum Client {
    Producer(BaseProducer<Context>),
    Consumer(BaseConsumer<Context>),
    Admin(AdminClient<Context>),
}
impl lines::Client for Client {
    const ROLES: &'static [(&'static str, &'static [&'static str])] = &[
        ("producer", &["append", "flush"]),
        (
            "consumer",
            &[
                "subscribe", "resubscribe", "assign", "poll", "pause", "resume", "seek", "position", "commit",
                "committed",
            ],
        ),
        (
            "admin",
            &["create_topics", "describe_topics", "delete_topics", "describe_configs", "alter_configs"],
        ),
    ];

    fn open(c: &Value) -> Done<(Client, Value)> {
        let ((mut made, result), name) = (configuration(c)?, text(c, "client")?.to_string());
        let context = Context { name: name.clone(), ..Default::default() };
        let client = match text(c, "role")? {
            "producer" => Client::Producer(made.create_with_context(context)?),
            "consumer" => {
                if made.get("group.id").is_none() {
                    made.set("group.id", format!("{name}-alone"));
                }
                Client::Consumer(made.create_with_context(context)?)
            }
            _ => Client::Admin(made.create_with_context(context)?),
        };
        Ok((client, result))
    }

    fn carry_out(&mut self, task: Task) {
        let c = task.command.clone();
        let flushed = |producer: &BaseProducer<Context>| {
            Ok(producer
                .flush(Duration::from_millis(c["timeout_ms"].as_u64().unwrap_or(30_000)))
                .map(|()| json!({}))?)
        };
        match self {
            Client::Producer(producer) if c["command"] == "append" => append(producer, task),
            Client::Producer(producer) => task.done(flushed(producer)),
            Client::Consumer(consumer) => task.done(consume(consumer, &c)),
            Client::Admin(_) if c["command"] == "close" => task.done(Ok(json!({}))),
            Client::Admin(admin) => task.done(administer(admin, &c)),
        }
    }

    fn idle(&mut self) {
        if let Client::Producer(producer) = self {
            producer.poll(Duration::ZERO);
        }
    }
}

fn main() {
    let config: Vec<&str> =
        NAMES.split_whitespace().filter_map(|one| one.split('=').next()).chain(["extra"]).collect();
    serve::<Client>(&json!({"driver": "rdkafka", "version": env!("CARGO_PKG_VERSION"), "runtime": "Rust",
        "library": format!("rdkafka, librdkafka {}", rdkafka::util::get_rdkafka_version().1),
        "codecs": CODECS,
        "acks": [0, 1, -1], "idempotence": true, "transactions": false, "assignors": ASSIGNORS,
        "commit_modes": ["sync", "async"], "config": config}));
}

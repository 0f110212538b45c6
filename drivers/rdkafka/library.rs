//! What librdkafka calls settings, places and errors.

use crate::lines::{
    cut, encoded, field, happened, int, json, refused, text, trouble, Done, Fail, Task, Value,
};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, Headers, Message};
use rdkafka::producer::{DeliveryResult, ProducerContext};
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

pub const LONG: Duration = Duration::from_secs(30);
pub const SOON: Duration = Duration::from_millis(2);
pub const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];
pub const ASSIGNORS: [&str; 3] = ["range", "roundrobin", "cooperative-sticky"];
/// Settings, and librdkafka's words for them.
pub const NAMES: &str = "bootstrap=bootstrap.servers client_id=client.id \
    metadata_max_age_ms=topic.metadata.refresh.interval.ms retry_backoff_ms=retry.backoff.ms \
    request_timeout_ms=socket.timeout.ms acks=acks idempotence=enable.idempotence \
    in_flight=max.in.flight.requests.per.connection linger_ms=linger.ms batch_bytes=batch.size \
    batch_records=batch.num.messages compression=compression.type retries=message.send.max.retries \
    delivery_timeout_ms=message.timeout.ms group=group.id group_instance_id=group.instance.id \
    isolation=isolation.level assignor=partition.assignment.strategy auto_commit=enable.auto.commit \
    auto_commit_interval_ms=auto.commit.interval.ms session_timeout_ms=session.timeout.ms \
    heartbeat_interval_ms=heartbeat.interval.ms max_poll_interval_ms=max.poll.interval.ms \
    offset_reset=auto.offset.reset fetch_max_wait_ms=fetch.wait.max.ms fetch_min_bytes=fetch.min.bytes \
    fetch_max_bytes=fetch.max.bytes rack=client.rack";

impl From<KafkaError> for Fail {
    fn from(error: KafkaError) -> Fail {
        Fail::Error(error_of(&error))
    }
}

pub fn error_of(error: &KafkaError) -> Value {
    let code = if let KafkaError::AdminOp(code) = error { Some(*code) } else { error.rdkafka_error_code() };
    json!({"name": code.map_or("KafkaError".into(), |one| format!("{one:?}")),
        "code": code.map(|one| one as i32),
        "text": cut(&error.to_string()), "fatal": code == Some(RDKafkaErrorCode::Fatal)})
}

/// What callbacks need to know.
#[derive(Default)]
pub struct Context {
    pub name: String,
    /// The next offset of each partition that a poll has handed out.
    pub handed: Mutex<BTreeMap<(String, i32), i64>>,
    /// A record that did not fit the last line, and its size.
    pub kept: Mutex<Option<(Value, usize)>>,
}
impl Context {
    pub fn forget(&self, topic: &str, partition: i32) {
        self.handed.lock().unwrap().remove(&(topic.into(), partition));
        self.kept.lock().unwrap().take_if(|(one, _)| one["topic"] == topic && one["partition"] == partition);
    }
}
impl ClientContext for Context {
    fn error(&self, error: KafkaError, _reason: &str) {
        trouble(&self.name, error_of(&error));
    }
}
impl ProducerContext for Context {
    type DeliveryOpaque = Box<Task>;
    fn delivery(&self, result: &DeliveryResult<'_>, task: Box<Task>) {
        task.done(match result {
            Ok(one) => Ok(
                json!({"topic": one.topic(), "partition": one.partition(), "offset": one.offset().max(-1)}),
            ),
            Err((error, _)) => Err(error.clone().into()),
        });
    }
}
impl ConsumerContext for Context {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        let (event, partitions) = match rebalance {
            Rebalance::Assign(partitions) => ("assigned", partitions),
            Rebalance::Revoke(partitions) if consumer.assignment_lost() => ("lost", partitions),
            Rebalance::Revoke(partitions) => ("revoked", partitions),
            Rebalance::Error(error) => return trouble(&self.name, error_of(error)),
        };
        let (rows, all) = (shown(partitions), partitions.elements());
        happened(event, &self.name, &json!({"partitions": rows}));
        all.iter().for_each(|one| self.forget(one.topic(), one.partition()));
    }
}

pub fn place(offset: i64) -> Offset {
    match offset {
        -2 => Offset::Beginning,
        -1 => Offset::End,
        other => Offset::Offset(other),
    }
}
pub fn places(rows: &[Value], offsets: bool) -> Done<TopicPartitionList> {
    let mut made = TopicPartitionList::new();
    for one in rows {
        let offset = if offsets { place(int(one, "offset")?) } else { Offset::Invalid };
        made.add_partition_offset(text(one, "topic")?, int(one, "partition")? as i32, offset)?;
    }
    Ok(made)
}
pub fn shown(places: &TopicPartitionList) -> Vec<Value> {
    let at = |offset| if let Offset::Offset(at) = offset { at } else { -1 };
    let row =
        |topic, partition, offset| json!({"topic": topic, "partition": partition, "offset": at(offset)});
    places.elements().iter().map(|one| row(one.topic(), one.partition(), one.offset())).collect()
}
pub fn record(one: &impl Message) -> (Value, usize) {
    let row = |one: Header<'_, &[u8]>| json!([one.key, encoded(one.value)]);
    let headers: Vec<Value> = one.headers().map_or(vec![], |all| all.iter().map(row).collect());
    let values = [encoded(one.key()), encoded(one.payload())];
    let size = values.iter().flatten().map(String::len).sum::<usize>() + json!(headers).to_string().len();
    (
        json!({"topic": one.topic(), "partition": one.partition(), "offset": one.offset(), "key": values[0],
        "value": values[1], "headers": headers, "timestamp_ms": one.timestamp().to_millis().unwrap_or(-1)}),
        size,
    )
}

pub fn configuration(c: &Value) -> Done<(ClientConfig, Value)> {
    let (mut made, mut ignored) = (ClientConfig::new(), vec![]);
    let words = |value: &Value| value.as_str().map_or(value.to_string(), str::to_string);
    for (name, value) in field(c, "config", Value::as_object)?.iter().filter(|one| !one.1.is_null()) {
        let value = words(value);
        let values: &[&str] = match name.as_str() {
            "compression" => &CODECS,
            "assignor" => &ASSIGNORS,
            "acks" => &["0", "1", "-1"],
            "offset_reset" => &["earliest", "latest", "none"],
            _ => &[&value],
        };
        if !values.contains(&value.as_str()) {
            return refused(&format!("a {name} of {}", values.join(", ")), value);
        }
        let error = name == "offset_reset" && value == "none";
        match NAMES.split_whitespace().filter_map(|one| one.split_once('=')).find(|one| one.0 == name) {
            Some((_, property)) => drop(made.set(property, if error { "error" } else { &value })),
            None if name == "extra" => {}
            None => ignored.push(name),
        }
    }
    for (name, value) in c["config"]["extra"].as_object().into_iter().flatten() {
        made.set(name, words(value));
    }
    Ok((made, json!({"ignored": ignored})))
}

//! The driver of rdkafka. Transactions are left out.
mod lines;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use lines::{bytes, cut, encoded, field, happened, int, json, list, refused, serve, text, trouble, Done, Fail, Task, Value};
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, NewTopic, ResourceSpecifier, TopicReplication, TopicResult};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};

const LONG: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_millis(2);
const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];
const ASSIGNORS: [&str; 3] = ["range", "roundrobin", "cooperative-sticky"];
/// Settings, and librdkafka's words for them.
const NAMES: &str = "bootstrap=bootstrap.servers client_id=client.id metadata_max_age_ms=metadata.max.age.ms \
    retry_backoff_ms=retry.backoff.ms request_timeout_ms=socket.timeout.ms acks=acks idempotence=enable.idempotence \
    in_flight=max.in.flight.requests.per.connection linger_ms=linger.ms batch_bytes=batch.size \
    batch_records=batch.num.messages compression=compression.type retries=message.send.max.retries \
    delivery_timeout_ms=message.timeout.ms group=group.id group_instance_id=group.instance.id \
    isolation=isolation.level assignor=partition.assignment.strategy auto_commit=enable.auto.commit \
    auto_commit_interval_ms=auto.commit.interval.ms session_timeout_ms=session.timeout.ms \
    heartbeat_interval_ms=heartbeat.interval.ms max_poll_interval_ms=max.poll.interval.ms \
    offset_reset=auto.offset.reset fetch_max_wait_ms=fetch.wait.max.ms fetch_min_bytes=fetch.min.bytes \
    fetch_max_bytes=fetch.max.bytes";

impl From<KafkaError> for Fail {
    fn from(error: KafkaError) -> Fail {
        Fail::Error(error_of(&error))
    }
}

fn error_of(error: &KafkaError) -> Value {
    let code = if let KafkaError::AdminOp(code) = error { Some(*code) } else { error.rdkafka_error_code() };
    json!({"name": code.map_or("KafkaError".into(), |one| format!("{one:?}")), "code": code.map(|one| one as i32),
        "text": cut(&error.to_string()), "fatal": code == Some(RDKafkaErrorCode::Fatal)})
}

/// What callbacks need to know.
#[derive(Default)]
struct Context {
    name: String,
    /// The next offset of each partition that a poll has handed out.
    handed: Mutex<BTreeMap<(String, i32), i64>>,
    /// A record that did not fit the last line, and its size.
    kept: Mutex<Option<(Value, usize)>>,
}
impl Context {
    fn forget(&self, topic: &str, partition: i32) {
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
            Ok(one) => Ok(json!({"topic": one.topic(), "partition": one.partition(), "offset": one.offset().max(-1)})),
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

fn place(offset: i64) -> Offset {
    match offset {
        -2 => Offset::Beginning,
        -1 => Offset::End,
        other => Offset::Offset(other),
    }
}
fn places(rows: &[Value], offsets: bool) -> Done<TopicPartitionList> {
    let mut made = TopicPartitionList::new();
    for one in rows {
        let offset = if offsets { place(int(one, "offset")?) } else { Offset::Invalid };
        made.add_partition_offset(text(one, "topic")?, int(one, "partition")? as i32, offset)?;
    }
    Ok(made)
}
fn shown(places: &TopicPartitionList) -> Vec<Value> {
    let at = |offset| if let Offset::Offset(at) = offset { at } else { -1 };
    let row = |topic, partition, offset| json!({"topic": topic, "partition": partition, "offset": at(offset)});
    places.elements().iter().map(|one| row(one.topic(), one.partition(), one.offset())).collect()
}
fn record(one: &impl Message) -> (Value, usize) {
    let row = |one: Header<'_, &[u8]>| json!([one.key, encoded(one.value)]);
    let headers: Vec<Value> = one.headers().map_or(vec![], |all| all.iter().map(row).collect());
    let values = [encoded(one.key()), encoded(one.payload())];
    let size = values.iter().flatten().map(String::len).sum::<usize>() + json!(headers).to_string().len();
    (json!({"topic": one.topic(), "partition": one.partition(), "offset": one.offset(), "key": values[0],
        "value": values[1], "headers": headers, "timestamp_ms": one.timestamp().to_millis().unwrap_or(-1)}), size)
}

fn configuration(c: &Value) -> Done<(ClientConfig, Value)> {
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

fn append(producer: &BaseProducer<Context>, task: Task) {
    let c = task.command.clone();
    let prepared = || -> Done<_> {
        let mut headers = OwnedHeaders::new();
        for one in c["headers"].as_array().into_iter().flatten() {
            let row = json!({"name": one[0], "value": one[1]});
            headers = headers.insert(Header { key: text(&row, "name")?, value: bytes(&row, "value")?.as_ref() });
        }
        let partition = field(&c, "partition", |one| if one.is_null() { Some(None) } else { one.as_i64().map(Some) })?;
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

fn poll(consumer: &BaseConsumer<Context>, c: &Value) -> Done {
    let until = Instant::now() + Duration::from_millis(int(c, "timeout_ms")?.max(0) as u64);
    let (most, context) = (int(c, "max_records")?.min(1_000) as usize, consumer.context());
    let (mut records, mut total) = (vec![], 0);
    while records.len() < most {
        let left = until.saturating_duration_since(Instant::now());
        let kept = context.kept.lock().unwrap().take();
        let polled = || consumer.poll(if records.is_empty() { left } else { SOON }).map(|one| one.map(|one| record(&one)));
        let (one, size) = match kept.map(Ok).or_else(polled) {
            Some(Ok(one)) => one,
            Some(Err(error)) if left.is_zero() => {
                trouble(&context.name, error_of(&error));
                break;
            }
            Some(Err(error)) => {
                trouble(&context.name, error_of(&error));
                continue;
            }
            None => break,
        };
        total += size;
        if total > lines::MOST_POLLED * 4 / 3 && !records.is_empty() {
            *context.kept.lock().unwrap() = Some((one, size));
            break;
        }
        let partition = (text(&one, "topic")?.to_string(), int(&one, "partition")? as i32);
        context.handed.lock().unwrap().insert(partition, int(&one, "offset")? + 1);
        records.push(one);
    }
    Ok(json!({"records": records}))
}

fn consume(consumer: &BaseConsumer<Context>, c: &Value) -> Done {
    match text(c, "command")? {
        "subscribe" | "resubscribe" => {
            let topics: Vec<&str> = list(c, "topics")?.iter().filter_map(Value::as_str).collect();
            consumer.subscribe(&topics)?;
        }
        "assign" => consumer.assign(&places(list(c, "partitions")?, true)?)?,
        "poll" => return poll(consumer, c),
        "seek" => {
            let (topic, partition) = (text(c, "topic")?, int(c, "partition")? as i32);
            consumer.context().forget(topic, partition);
            consumer.seek(topic, partition, place(int(c, "offset")?), LONG)?;
        }
        "position" => {
            let (topic, partition, all) = (text(c, "topic")?, int(c, "partition")?, shown(&consumer.position()?));
            let found = all.into_iter().find(|one| one["topic"] == topic && one["partition"] == partition);
            return Ok(json!({"offset": found.map_or(json!(-1), |one| one["offset"].clone())}));
        }
        "commit" => {
            let handed = consumer.context().handed.lock().unwrap().clone();
            let row = |((topic, partition), offset)| json!({"topic": topic, "partition": partition, "offset": offset});
            let all = handed.into_iter().map(row).collect();
            let rows = if field(c, "offsets", Some)?.is_null() { &all } else { list(c, "offsets")? };
            let later = text(c, "mode")? == "async";
            if !rows.is_empty() {
                let mode = if later { CommitMode::Async } else { CommitMode::Sync };
                consumer.commit(&places(rows, true)?, mode)?;
            }
            return Ok(json!({"reported": !later, "offsets": if later { Value::Null } else { json!(rows) }}));
        }
        "committed" => {
            let found = consumer.committed_offsets(places(list(c, "partitions")?, false)?, LONG)?;
            return Ok(json!({"offsets": shown(&found)}));
        }
        _ => {}
    }
    Ok(json!({}))
}

fn administer(admin: &AdminClient<Context>, c: &Value) -> Done {
    let options = AdminOptions::new().operation_timeout(Some(LONG)).request_timeout(Some(LONG));
    let failed = |code: RDKafkaErrorCode| error_of(&KafkaError::AdminOp(code));
    let row = |one: TopicResult| match one {
        Ok(name) => json!({"name": name, "error": null}),
        Err((name, code)) => json!({"name": name, "error": failed(code)}),
    };
    let topics = |said: Vec<TopicResult>| json!({"topics": said.into_iter().map(row).collect::<Vec<_>>()});
    match text(c, "command")? {
        "create_topics" => {
            let mut made = vec![];
            for one in list(c, "topics")? {
                let factor = TopicReplication::Fixed(int(one, "replication_factor")? as i32);
                let mut topic = NewTopic::new(text(one, "name")?, int(one, "partitions")? as i32, factor);
                for (name, value) in one["config"].as_object().into_iter().flatten() {
                    topic = topic.set(name, value.as_str().unwrap_or_default());
                }
                made.push(topic);
            }
            Ok(topics(block_on(admin.create_topics(&made, &options))?))
        }
        "delete_topics" => {
            let names: Vec<&str> = list(c, "topics")?.iter().filter_map(Value::as_str).collect();
            Ok(topics(block_on(admin.delete_topics(&names, &options))?))
        }
        "describe_topics" => {
            let mut rows = vec![];
            for name in list(c, "topics")?.iter().filter_map(Value::as_str) {
                let said = admin.inner().fetch_metadata(Some(name), LONG)?;
                let row = |one: &rdkafka::metadata::MetadataPartition| json!({"partition": one.id(),
                    "leader": one.leader(), "replicas": one.replicas(), "isr": one.isr()});
                for topic in said.topics() {
                    let partitions: Vec<Value> = topic.partitions().iter().map(row).collect();
                    let error = topic.error().map(|code| failed(code.into()));
                    rows.push(json!({"name": topic.name(), "error": error, "partitions": partitions}));
                }
            }
            Ok(json!({"topics": rows}))
        }
        "describe_configs" => {
            let asked = [ResourceSpecifier::Topic(text(c, "topic")?)];
            let mut config = json!({});
            for one in block_on(admin.describe_configs(&asked, &options))? {
                for entry in one.map_err(KafkaError::AdminOp)?.entries {
                    config[entry.name] = json!(entry.value);
                }
            }
            Ok(json!({"config": config}))
        }
        _ => {
            let mut asked = AlterConfig::new(ResourceSpecifier::Topic(text(c, "topic")?));
            for (name, value) in field(c, "config", Value::as_object)? {
                asked = asked.set(name, value.as_str().unwrap_or_default());
            }
            for one in block_on(admin.alter_configs(&[asked], &options))? {
                one.map_err(|(_, code)| KafkaError::AdminOp(code))?;
            }
            Ok(json!({}))
        }
    }
}

enum Client {
    Producer(BaseProducer<Context>),
    Consumer(BaseConsumer<Context>),
    Admin(AdminClient<Context>),
}
impl lines::Client for Client {
    const ROLES: &'static [(&'static str, &'static [&'static str])] = &[
        ("producer", &["append", "flush"]),
        ("consumer", &["subscribe", "resubscribe", "assign", "poll", "seek", "position", "commit", "committed"]),
        ("admin", &["create_topics", "describe_topics", "delete_topics", "describe_configs", "alter_configs"]),
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
            Ok(producer.flush(Duration::from_millis(c["timeout_ms"].as_u64().unwrap_or(30_000))).map(|()| json!({}))?)
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
    let config: Vec<&str> = NAMES.split_whitespace().filter_map(|one| one.split('=').next()).chain(["extra"]).collect();
    serve::<Client>(&json!({"driver": "rdkafka", "version": env!("CARGO_PKG_VERSION"), "runtime": "Rust",
        "library": format!("rdkafka, librdkafka {}", rdkafka::util::get_rdkafka_version().1), "codecs": CODECS,
        "acks": [0, 1, -1], "idempotence": true, "transactions": false, "assignors": ASSIGNORS,
        "commit_modes": ["sync", "async"], "config": config}));
}

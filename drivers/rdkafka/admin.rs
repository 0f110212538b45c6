//! The admin client.

use crate::library::{error_of, Context, LONG};
use crate::lines::{field, int, json, list, text, Done, Value};
use futures::executor::block_on;
use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewTopic, ResourceSpecifier, TopicReplication, TopicResult,
};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

pub fn administer(admin: &AdminClient<Context>, c: &Value) -> Done {
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
                let row = |one: &rdkafka::metadata::MetadataPartition| {
                    json!({"partition": one.id(),
                    "leader": one.leader(), "replicas": one.replicas(), "isr": one.isr()})
                };
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

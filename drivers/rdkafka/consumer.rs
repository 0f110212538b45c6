//! The consumer's polls and commands.

use crate::library::{error_of, place, places, record, shown, Context, LONG, SOON};
use crate::lines::{field, int, json, list, text, trouble, Done, Value};
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use std::time::{Duration, Instant};

pub fn poll(consumer: &BaseConsumer<Context>, c: &Value) -> Done {
    let until = Instant::now() + Duration::from_millis(int(c, "timeout_ms")?.max(0) as u64);
    let (most, context) = (int(c, "max_records")?.min(1_000) as usize, consumer.context());
    let (mut records, mut total) = (vec![], 0);
    while records.len() < most {
        let left = until.saturating_duration_since(Instant::now());
        let kept = context.kept.lock().unwrap().take();
        let polled = || {
            consumer.poll(if records.is_empty() { left } else { SOON }).map(|one| one.map(|one| record(&one)))
        };
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
        if total > crate::lines::MOST_POLLED * 4 / 3 && !records.is_empty() {
            *context.kept.lock().unwrap() = Some((one, size));
            break;
        }
        let partition = (text(&one, "topic")?.to_string(), int(&one, "partition")? as i32);
        context.handed.lock().unwrap().insert(partition, int(&one, "offset")? + 1);
        records.push(one);
    }
    Ok(json!({"records": records}))
}

pub fn consume(consumer: &BaseConsumer<Context>, c: &Value) -> Done {
    match text(c, "command")? {
        "subscribe" | "resubscribe" => {
            let topics: Vec<&str> = list(c, "topics")?.iter().filter_map(Value::as_str).collect();
            consumer.subscribe(&topics)?;
        }
        "assign" => consumer.assign(&places(list(c, "partitions")?, true)?)?,
        "poll" => return poll(consumer, c),
        "pause" => consumer.pause(&consumer.assignment()?)?,
        "resume" => consumer.resume(&consumer.assignment()?)?,
        "seek" => {
            let (topic, partition) = (text(c, "topic")?, int(c, "partition")? as i32);
            consumer.context().forget(topic, partition);
            consumer.seek(topic, partition, place(int(c, "offset")?), LONG)?;
        }
        "position" => {
            let (topic, partition, all) =
                (text(c, "topic")?, int(c, "partition")?, shown(&consumer.position()?));
            let found = all.into_iter().find(|one| one["topic"] == topic && one["partition"] == partition);
            return Ok(json!({"offset": found.map_or(json!(-1), |one| one["offset"].clone())}));
        }
        "commit" => {
            let handed = consumer.context().handed.lock().unwrap().clone();
            let row = |((topic, partition), offset)| {
                json!({"topic": topic, "partition": partition, "offset": offset})
            };
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

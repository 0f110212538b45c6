//! What the drivers in Rust share: lines in, lines out, and one thread for each client (docs/reference/drivers.md).
use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{mpsc, Arc, LazyLock, Mutex};
use std::time::{Duration, Instant, SystemTime};

use base64::{engine::general_purpose::STANDARD, Engine};
pub use serde_json::{json, Value};

const MOST_LINE: u64 = 1 << 20;
const MOST_CLIENTS: usize = 64;
const MOST_UNDER_WAY: usize = 20_000;
const MOST_TEXT: usize = 2_000;
const MOST_TROUBLES: u64 = 10;
pub const MOST_POLLED: usize = 500_000;
const IDLE: Duration = Duration::from_millis(2);
const SETTINGS: &str = "bootstrap client_id request_timeout_ms metadata_max_age_ms retry_backoff_ms acks idempotence \
    in_flight linger_ms batch_bytes batch_records compression retries delivery_timeout_ms transactional_id \
    transaction_timeout_ms group group_instance_id isolation assignor auto_commit auto_commit_interval_ms \
    session_timeout_ms heartbeat_interval_ms max_poll_interval_ms offset_reset fetch_max_wait_ms fetch_min_bytes \
    fetch_max_bytes max_poll_records rack extra";

static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
static UNDER_WAY: LazyLock<Mutex<HashSet<i64>>> = LazyLock::new(Default::default);

/// Why a command is not done.
pub enum Fail {
    /// Nothing was asked of the library: expected and seen.
    Refused(String, String),
    /// The error as it is on a line.
    Error(Value),
}
pub type Done<T = Value> = Result<T, Fail>;

pub fn refused<T>(expected: &str, seen: impl ToString) -> Done<T> {
    Err(Fail::Refused(expected.into(), seen.to_string()))
}

pub fn cut(text: &str) -> String {
    text.chars().take(MOST_TEXT).collect()
}

/// A field of a command, in its type.
pub fn field<'a, T>(c: &'a Value, name: &str, typed: impl Fn(&'a Value) -> Option<T>) -> Done<T> {
    let seen = c.get(name).map_or("none".into(), Value::to_string);
    c.get(name).and_then(typed).map_or_else(|| refused(&format!("the field {name} in its type"), seen), Ok)
}
pub fn text<'a>(c: &'a Value, name: &str) -> Done<&'a str> {
    field(c, name, Value::as_str)
}
pub fn int(c: &Value, name: &str) -> Done<i64> {
    field(c, name, Value::as_i64)
}
pub fn list<'a>(c: &'a Value, name: &str) -> Done<&'a Vec<Value>> {
    field(c, name, Value::as_array)
}
pub fn bytes(c: &Value, name: &str) -> Done<Option<Vec<u8>>> {
    let decoded = |one: &Value| one.as_str().and_then(|text| STANDARD.decode(text).ok()).map(Some);
    field(c, name, |one| if one.is_null() { Some(None) } else { decoded(one) })
}
pub fn encoded(value: Option<&[u8]>) -> Option<String> {
    value.map(|one| STANDARD.encode(one))
}

fn now() -> u64 {
    BEGAN.elapsed().as_nanos() as u64
}
fn wall() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |age| age.as_nanos() as u64)
}
fn write(line: &Value) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
fn extended(mut line: Value, more: &Value) -> Value {
    if let (Some(fields), Some(more)) = (line.as_object_mut(), more.as_object()) {
        fields.extend(more.clone());
    }
    line
}

/// Write a line that answers no command.
pub fn happened(event: &str, client: &str, fields: &Value) {
    write(&extended(json!({"event": event, "client": client, "at_ns": now(), "wall_ns": wall()}), fields));
}
/// An error that belongs to no command: at most ten a second are written.
pub fn trouble(client: &str, error: Value) {
    static SECOND: AtomicU64 = AtomicU64::new(0);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    if SECOND.swap(BEGAN.elapsed().as_secs(), Ordering::Relaxed) != BEGAN.elapsed().as_secs() {
        COUNT.store(0, Ordering::Relaxed);
    }
    if COUNT.fetch_add(1, Ordering::Relaxed) < MOST_TROUBLES {
        happened("trouble", client, &json!({"error": error}));
    }
}
fn refuse(c: &Value, expected: &str, seen: &str) {
    let name = c["command"].as_str().map(cut);
    write(&json!({"event": "refused", "id": c["id"], "command": name, "expected": expected, "seen": cut(seen)}));
}

/// A command under way.
pub struct Task {
    pub command: Value,
    invoked_ns: u64,
}
impl Task {
    /// Answer it.
    pub fn done(self, result: Done) {
        let c = &self.command;
        UNDER_WAY.lock().unwrap().remove(&c["id"].as_i64().unwrap_or(-1));
        let line = json!({"event": "done", "id": c["id"], "client": c["client"], "command": c["command"],
            "ok": result.is_ok(), "invoked_ns": self.invoked_ns, "completed_ns": now(), "wall_ns": wall()});
        match result {
            Ok(fields) => write(&extended(line, &fields)),
            Err(Fail::Error(error)) => write(&extended(line, &json!({"error": error}))),
            Err(Fail::Refused(expected, seen)) => refuse(c, &expected, &seen),
        }
    }
}

/// A client of the library. It is made, used and dropped in a thread of its own.
pub trait Client: Sized + 'static {
    /// What each role can do.
    const ROLES: &'static [(&'static str, &'static [&'static str])];
    /// The client that `open` asks for, and its result. Settings have been looked at.
    fn open(c: &Value) -> Done<(Self, Value)>;
    /// Do a command, and answer it, now or later. `close` comes last.
    fn carry_out(&mut self, task: Task);
    /// Called every few milliseconds while there is nothing to do.
    fn idle(&mut self) {}
}

struct Worker {
    queue: mpsc::Sender<Task>,
    commands: &'static [&'static str],
    gone: Arc<AtomicBool>,
}

fn work<C: Client>(queue: &mpsc::Receiver<Task>, gone: &AtomicBool) {
    let mut client: Option<C> = None;
    loop {
        match (queue.recv_timeout(IDLE), &mut client) {
            (Ok(mut task), None) => {
                task.invoked_ns = now();
                match C::open(&task.command) {
                    Ok((made, result)) => {
                        client = Some(made);
                        task.done(Ok(result));
                    }
                    Err(fail) => {
                        gone.store(true, Ordering::SeqCst);
                        return task.done(Err(fail));
                    }
                }
            }
            (Ok(mut task), Some(open)) => {
                let last = task.command["command"] == "close";
                task.invoked_ns = now();
                gone.store(last, Ordering::SeqCst);
                open.carry_out(task);
                if last {
                    return;
                }
            }
            (Err(mpsc::RecvTimeoutError::Timeout), Some(open)) => open.idle(),
            (Err(mpsc::RecvTimeoutError::Timeout), None) => {}
            (Err(mpsc::RecvTimeoutError::Disconnected), _) => return,
        }
    }
}

/// Read commands until there are no more. ready: what the first line says in addition.
pub fn serve<C: Client>(ready: &Value) {
    let (own, roles) = (C::ROLES.iter().flat_map(|one| one.1), C::ROLES.iter().map(|one| one.0));
    let commands: Vec<&str> = own.copied().chain(["open", "close", "clock", "quit"]).collect();
    let first = json!({"event": "ready", "protocol": 1, "commands": commands, "now_ns": now(), "wall_ns": wall(),
        "roles": roles.collect::<Vec<_>>()});
    write(&extended(first, ready));
    let (mut input, mut workers) = (io::stdin().lock(), HashMap::new());
    loop {
        let mut line = vec![];
        let read = input.by_ref().take(MOST_LINE + 1).read_until(b'\n', &mut line).unwrap_or(0);
        if read == 0 || read as u64 > MOST_LINE {
            break;
        }
        let c: Value = match serde_json::from_slice(&line) {
            Ok(c @ Value::Object(_)) => c,
            _ => {
                refuse(&json!({}), "a command as one JSON object", &String::from_utf8_lossy(&line));
                continue;
            }
        };
        match take::<C>(&c, &commands, &mut workers) {
            Err(Fail::Refused(expected, seen)) => refuse(&c, &expected, &seen),
            Ok(true) => break,
            _ => {}
        }
    }
    let _out = io::stdout().lock(); // nothing is written after the last line
    std::process::exit(0);
}

/// One command: to the thread of its client. Whether it is the last one.
fn take<C: Client>(c: &Value, commands: &[&str], workers: &mut HashMap<String, Worker>) -> Done<bool> {
    let (name, id) = (c["command"].as_str().unwrap_or(""), int(c, "id")?);
    if !commands.contains(&name) {
        return refused(&format!("one of {}", commands.join(", ")), &c["command"]);
    }
    if name == "clock" || name == "quit" {
        let at = now();
        write(&json!({"event": "done", "id": id, "command": name, "ok": true, "invoked_ns": at, "completed_ns": at,
            "now_ns": at, "wall_ns": wall()}));
        return Ok(name == "quit");
    }
    workers.retain(|_, one| !one.gone.load(Ordering::SeqCst));
    let client = text(c, "client")?;
    if name == "open" {
        let role = text(c, "role")?;
        let Some((_, commands)) = C::ROLES.iter().find(|one| one.0 == role) else {
            return refused("a known role", role);
        };
        let config = field(c, "config", Value::as_object)?;
        if let Some(unknown) = config.keys().find(|one| !SETTINGS.split_whitespace().any(|known| known == *one)) {
            return refused(&format!("one of {SETTINGS}"), unknown);
        }
        text(&c["config"], "bootstrap")?;
        if workers.contains_key(client) || workers.len() >= MOST_CLIENTS {
            return refused(&format!("a name that is not open, of at most {MOST_CLIENTS}"), client);
        }
        let (queue, tasks) = mpsc::channel();
        let gone = Arc::new(AtomicBool::new(false));
        workers.insert(client.into(), Worker { queue, commands, gone: gone.clone() });
        std::thread::spawn(move || work::<C>(&tasks, &gone));
    }
    let Some(worker) = workers.get(client) else { return refused("a client that is open", client) };
    if name != "open" && name != "close" && !worker.commands.contains(&name) {
        return refused(&format!("one of {} of this client", worker.commands.join(", ")), name);
    }
    let mut under_way = UNDER_WAY.lock().unwrap();
    if under_way.len() >= MOST_UNDER_WAY {
        return refused(&format!("at most {MOST_UNDER_WAY} commands under way"), "more");
    }
    under_way.insert(id);
    drop(under_way);
    if worker.queue.send(Task { command: c.clone(), invoked_ns: now() }).is_err() {
        UNDER_WAY.lock().unwrap().remove(&id);
        return refused("a client that is open", client);
    }
    Ok(false)
}

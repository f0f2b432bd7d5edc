// A small peek-lock store on a clock of its own, and the loop that lets `peeklock conform store` drive it.
// The standard library and nothing else: rustc -o store store.rs. FAULT in the environment plants a mistake.
use std::collections::HashMap;
use std::io::{self, BufRead, Write};

mod json;
use json::{text, Json};

struct Row {
    item: String,
    visible_at: i64,
    attempts: i64,
    token: Option<String>, // current until the next fetch or abandon
    locked_until: i64,
}

enum Refusal {
    Permanent(String),
    Retryable(String),
}

type Answer = Result<String, Refusal>;

#[derive(Default)]
struct Store {
    now: i64,
    rows: Vec<Row>, // the oldest first
    completions: Vec<(String, String)>,
    failing: HashMap<String, bool>, // the calls that are to fail: after their effect, or before it
}

impl Store {
    // The row that the token is current for; where the lock has to hold, it must not have run out.
    fn find(&self, token: &str, must_hold: bool) -> Result<usize, Refusal> {
        let found = self.rows.iter().position(|row| row.token.as_deref() == Some(token));
        match found {
            Some(n) if !must_hold || self.rows[n].locked_until > self.now => Ok(n),
            Some(_) => Err(Refusal::Permanent(format!("the lock of {token} has expired"))),
            None => Err(Refusal::Permanent(format!("token {token} is not current"))),
        }
    }

    fn fetch(&mut self, lock_timeout_ms: i64, tokens: &mut u64) -> Answer {
        let now = self.now;
        let free = |row: &&mut Row| row.visible_at <= now && (row.token.is_none() || row.locked_until <= now);
        let Some(row) = self.rows.iter_mut().find(free) else {
            return Ok("null".into());
        };
        *tokens += 1;
        let token = format!("rust-{tokens}");
        row.attempts += 1;
        row.locked_until = now + lock_timeout_ms;
        row.token = Some(token.clone());
        let (item, token, attempts) = (text(&row.item), text(&token), row.attempts);
        Ok(format!(r#"{{"item": {item}, "token": {token}, "attempt_count": {attempts}}}"#))
    }

    fn make(&mut self, call: &str, request: &Json, tokens: &mut u64, fault: &str) -> Answer {
        match call {
            "enqueue" => self.rows.push(Row {
                item: request.text("item"),
                visible_at: self.now + request.number("delay_ms"),
                attempts: 0,
                token: None,
                locked_until: 0,
            }),
            "fetch" => return self.fetch(request.number("lock_timeout_ms"), tokens),
            "renew" => {
                let n = self.find(&request.text("token"), true)?;
                let until = self.now + request.number("extend_for_ms");
                self.rows[n].locked_until = if fault == "renews-nothing" { self.rows[n].locked_until } else { until };
            }
            "ack" => {
                let n = self.find(&request.text("token"), fault != "stale-ack")?;
                let item = self.rows.remove(n).item;
                if let Json::Text(completion) = request.field("completion") {
                    self.completions.push((item, completion.clone()));
                }
            }
            "abandon" => {
                let n = self.find(&request.text("token"), false)?;
                let row = &mut self.rows[n];
                row.token = None;
                row.visible_at = self.now + request.number("delay_ms");
                row.attempts -= if request.truth("ignore_attempt") { 1 } else { 0 };
            }
            "cancel" => {
                let items = request.texts("items");
                let had: Vec<String> = items.into_iter().filter(|i| self.rows.iter().any(|r| r.item == *i)).collect();
                self.rows.retain(|row| !had.contains(&row.item) || fault == "cancels-nothing");
                return Ok(format!("[{}]", had.iter().map(|i| text(i)).collect::<Vec<_>>().join(", ")));
            }
            "completions" => {
                let one = |(i, c): &(String, String)| format!(r#"{{"item": {}, "completion": {}}}"#, text(i), text(c));
                return Ok(format!("[{}]", self.completions.iter().map(one).collect::<Vec<_>>().join(", ")));
            }
            "advance" => self.now += request.number("ms"),
            "fail_next" => {
                self.failing.insert(request.text("which"), request.truth("after_effect"));
            }
            "new" => *self = Store::default(),
            "close" => (),
            _ => panic!("unknown call {call}"),
        }
        Ok("null".into())
    }

    // One call, with the fault that was asked for it.
    fn call(&mut self, call: &str, request: &Json, tokens: &mut u64, fault: &str) -> Answer {
        match self.failing.remove(call) {
            Some(false) => Err(Refusal::Retryable("failed before it took effect".into())),
            Some(true) => {
                self.make(call, request, tokens, fault)?;
                Err(Refusal::Retryable("its response is lost".into()))
            }
            None => self.make(call, request, tokens, fault),
        }
    }
}

fn main() -> io::Result<()> {
    let fault = std::env::var("FAULT").unwrap_or_default();
    let (mut store, mut tokens) = (Store::default(), 0);
    for line in io::stdin().lock().lines() {
        let request = json::parse(&line?);
        let answer = if let Json::Text(call) = request.field("call") {
            let id = request.number("id");
            match store.call(call, &request, &mut tokens, &fault) {
                Ok(value) => format!(r#"{{"id": {id}, "ok": {value}}}"#),
                Err(refusal) => {
                    let (kind, message) = match refusal {
                        Refusal::Permanent(message) => ("permanent", message),
                        Refusal::Retryable(message) => ("retryable", message),
                    };
                    format!(r#"{{"id": {id}, "error": "{kind}", "message": {}}}"#, text(&message))
                }
            }
        } else {
            r#"{"peeklock": 1, "name": "rust-store", "capabilities": {"fault_injection": true}}"#.into()
        };
        println!("{answer}");
        io::stdout().flush()?;
    }
    Ok(())
}

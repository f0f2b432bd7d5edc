// As much of JSON as the wire format needs: whole numbers, texts, truth values, null, lists and objects.
use std::iter::Peekable;
use std::str::Chars;

pub enum Json {
    Null,
    Truth(bool),
    Number(i64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub fn field(&self, name: &str) -> &Json {
        let Json::Object(fields) = self else { return &Json::Null };
        fields.iter().find(|(n, _)| n == name).map_or(&Json::Null, |(_, value)| value)
    }

    pub fn text(&self, name: &str) -> String {
        match self.field(name) {
            Json::Text(value) => value.clone(),
            _ => panic!("{name} is no text"),
        }
    }

    pub fn number(&self, name: &str) -> i64 {
        match self.field(name) {
            Json::Number(value) => *value,
            _ => panic!("{name} is no whole number"),
        }
    }

    pub fn truth(&self, name: &str) -> bool {
        matches!(self.field(name), Json::Truth(true))
    }

    pub fn texts(&self, name: &str) -> Vec<String> {
        let Json::List(values) = self.field(name) else { panic!("{name} is no list") };
        let texts = values.iter().filter_map(|v| if let Json::Text(t) = v { Some(t.clone()) } else { None });
        texts.collect()
    }
}

pub fn parse(line: &str) -> Json {
    value(&mut line.chars().peekable())
}

// A text as JSON writes it.
pub fn text(value: &str) -> String {
    let mut out = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => out += &format!("\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out + "\""
}

fn next(rest: &mut Peekable<Chars>) -> char {
    while rest.next_if(|c| c.is_ascii_whitespace()).is_some() {}
    rest.next().expect("the line ends too early")
}

fn value(rest: &mut Peekable<Chars>) -> Json {
    match next(rest) {
        '{' => {
            let mut fields = vec![];
            loop {
                match next(rest) {
                    '}' => return Json::Object(fields),
                    ',' => continue,
                    _ => {
                        let name = string(rest);
                        assert_eq!(next(rest), ':');
                        fields.push((name, value(rest)));
                    }
                }
            }
        }
        '[' => {
            let mut values = vec![];
            loop {
                while rest.next_if(|c| c.is_ascii_whitespace() || *c == ',').is_some() {}
                if rest.next_if_eq(&']').is_some() {
                    return Json::List(values);
                }
                values.push(value(rest));
            }
        }
        '"' => Json::Text(string(rest)),
        first => {
            let mut word = String::from(first);
            while let Some(c) = rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
                word.push(c);
            }
            match word.as_str() {
                "null" => Json::Null,
                "true" | "false" => Json::Truth(word == "true"),
                _ => Json::Number(word.parse().expect("a whole number")),
            }
        }
    }
}

// The rest of a text, whose first quote has been read.
fn string(rest: &mut Peekable<Chars>) -> String {
    let mut out = String::new();
    let mut half = 0; // of a pair of escapes that stand for one character
    loop {
        match rest.next().expect("a text without an end") {
            '"' => return out,
            '\\' => match rest.next().expect("half an escape") {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                'b' => out.push('\u{8}'),
                'f' => out.push('\u{c}'),
                'u' => {
                    let digits: String = rest.take(4).collect();
                    let unit = u32::from_str_radix(&digits, 16).expect("four digits");
                    match unit {
                        0xd800..=0xdbff => half = unit,
                        0xdc00..=0xdfff => {
                            let code = 0x10000 + ((half - 0xd800) << 10) + (unit - 0xdc00);
                            out.push(char::from_u32(code).expect("a pair"));
                        }
                        _ => out.push(char::from_u32(unit).expect("a character")),
                    }
                }
                c => out.push(c),
            },
            c => out.push(c),
        }
    }
}

//! The JSON Schema of a configuration, for editors. It is made of the tables that the reader has, and of the pages of rules.

use serde_json::{Map, Value, json};

use super::keys::{self, Key, Kind};
use crate::finding::Level;
use crate::rules::{Group, Page, RULES, Setting};
use crate::settle::FailOn;

/// The schema. It refuses what the reader refuses, but for what no schema can know: GPUs, paths, and products of dimensions.
#[must_use]
pub fn schema() -> Value {
    let mut schema = table(keys::TOP, |value| ("default", value));
    schema["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    schema["title"] = "warplint.toml".into();
    schema["description"] = "The configuration of warplint, a linter for CUDA kernels".into();
    schema["definitions"] = json!({
        "level": {"enum": LEVELS.map(Level::name)},
        "target": {"enum": targets()},
        "size": size(),
        "block": block(),
    });
    schema
}

const LEVELS: [Level; 4] = [Level::Allow, Level::Note, Level::Warn, Level::Deny];

/// A table that has these keys and no others; `shown` tells what the value that `init` shows of a key is.
fn table(keys: &[Key], shown: fn(Value) -> (&'static str, Value)) -> Value {
    let property = |key: &Key| {
        let mut schema = property(key);
        let value: Option<toml::Table> = toml::from_str(&format!("it = {}", key.shown)).ok();
        if let Some(value) = value.and_then(|mut table| table.remove("it")) {
            let (name, value) = shown(json!(value));
            schema[name] = value;
        }
        (key.name.to_owned(), schema)
    };
    let properties: Map<String, Value> = keys.iter().map(property).collect();
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

fn property(key: &Key) -> Value {
    let mut schema = match key.kind {
        Kind::Names => one_or_more(json!({"type": "string"})),
        Kind::FailOn => json!({"enum": FailOn::ALL.map(FailOn::name)}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Text => json!({"type": "string"}),
        Kind::Glob | Kind::Path => json!({"type": "string", "minLength": 1}),
        Kind::Block => reference("block"),
        Kind::Size => reference("size"),
        Kind::Count => count(),
        Kind::Share => share(),
        Kind::Targets => json!({"type": "array", "items": reference("target"), "uniqueItems": true}),
        Kind::Rules => rules(),
        Kind::Kernels => {
            let mut entry = table(keys::KERNEL, |value| ("examples", json!([value])));
            entry["required"] = json!(["name"]);
            json!({"type": "array", "items": entry})
        }
    };
    schema["description"] = key.about.into();
    schema
}

fn one_or_more(item: Value) -> Value {
    json!({"anyOf": [item.clone(), {"type": "array", "items": item}]})
}

/// Draft 7 reads nothing beside a reference, so that it stands alone.
fn reference(name: &str) -> Value {
    json!({"allOf": [{"$ref": format!("#/definitions/{name}")}]})
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0, "maximum": u32::MAX})
}

fn share() -> Value {
    json!({"type": "number", "minimum": 0, "maximum": 1})
}

fn size() -> Value {
    json!({"anyOf": [count(), {"type": "string", "pattern": r"^\s*[0-9]+\s*([bB]|[kKmM]([iI]?[bB])?)?\s*$"}]})
}

fn block() -> Value {
    let dimension = json!({"type": "integer", "minimum": 1, "maximum": 1024});
    json!({"anyOf": [
        dimension.clone(),
        {"type": "array", "items": dimension, "minItems": 1, "maxItems": 3},
        {"type": "string", "pattern": r"^\s*[0-9]+(\s*[,xX×]\s*[0-9]+){0,2}\s*$"},
    ]})
}

fn targets() -> Vec<&'static str> {
    RULES.iter().map(|rule| rule.id).chain(Group::ALL.map(Group::name)).collect()
}

/// The table of rules and groups.
fn rules() -> Value {
    let group = |group: Group| {
        let mut level = reference("level");
        level["description"] = format!("The level of all rules of the group {}", group.name()).into();
        (group.name().to_owned(), level)
    };
    let mut properties: Map<String, Value> = Group::ALL.into_iter().map(group).collect();
    properties.extend(RULES.iter().map(|rule| (rule.id.to_owned(), of_rule(&rule.page()))));
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

/// A level, or a table of a level and options.
fn of_rule(page: &Page) -> Value {
    let mut properties: Map<String, Value> =
        page.options.iter().map(|(name, setting)| (name.clone(), option(setting))).collect();
    properties.insert("level".to_owned(), reference("level"));
    let table = json!({"type": "object", "additionalProperties": false, "properties": properties});
    json!({
        "anyOf": [reference("level"), table],
        "description": format!("{}. Group {}", page.summary, page.group.name()),
        "default": page.level.name(),
    })
}

fn option(setting: &Setting) -> Value {
    let mut schema = match &setting.default {
        toml::Value::Integer(_) => count(),
        toml::Value::Float(_) => share(),
        toml::Value::Boolean(_) => json!({"type": "boolean"}),
        _ => json!({"type": "string"}),
    };
    schema["default"] = json!(setting.default);
    schema["description"] = setting.about.as_str().into();
    schema
}

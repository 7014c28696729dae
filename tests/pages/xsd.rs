//! Holds XML against an XSD: the part of the language that JUnit's schema is written in, and a panic for any other.
//!
//! Independent of what writes the reports but for the tokens of XML; a content model becomes a regular expression over the
//! names of children.

use std::collections::HashMap;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use regex::Regex;

/// An element.
#[derive(Debug, Default)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) children: Vec<Node>,
    pub(crate) text: String,
}

impl Node {
    /// Reads a document.
    pub(crate) fn parse(text: &str) -> Result<Node, String> {
        let mut reader = Reader::from_str(text);
        let mut open = vec![Node::default()];
        loop {
            let event = reader.read_event().map_err(|error| format!("{error} at byte {}", reader.error_position()))?;
            match event {
                Event::Start(start) => open.push(Node::of(&start)?),
                Event::Empty(start) => {
                    let node = Node::of(&start)?;
                    open.last_mut().ok_or("no element is open")?.children.push(node);
                }
                Event::End(_) => {
                    let node = open.pop().ok_or("no element is open")?;
                    open.last_mut().ok_or("no element is open")?.children.push(node);
                }
                Event::Text(text) => {
                    let text = text.decode().map_err(|error| error.to_string())?;
                    open.last_mut().ok_or("no element is open")?.text.push_str(&text);
                }
                Event::CData(text) => {
                    let text = text.decode().map_err(|error| error.to_string())?;
                    open.last_mut().ok_or("no element is open")?.text.push_str(&text);
                }
                Event::GeneralRef(_) => open.last_mut().ok_or("no element is open")?.text.push('&'),
                Event::Eof => break,
                _ => {}
            }
        }
        let root = open.pop().filter(|_| open.is_empty()).ok_or("an element is not closed")?;
        // What no document of XML 1.0 may hold, as a character or by its number.
        let is_allowed =
            |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
        if let Some(bad) = text.chars().find(|c| !is_allowed(*c)) {
            return Err(format!("{bad:?} is no character of XML"));
        }
        let mut children = root.children;
        match children.len() {
            1 => Ok(children.remove(0)),
            count => Err(format!("a document of {count} elements")),
        }
    }

    fn of(start: &BytesStart<'_>) -> Result<Node, String> {
        let name = String::from_utf8_lossy(start.name().as_ref()).into_owned();
        let mut attributes = Vec::new();
        for attribute in start.attributes() {
            let attribute = attribute.map_err(|error| format!("<{name}>: {error}"))?;
            let key = String::from_utf8_lossy(attribute.key.as_ref()).into_owned();
            let value = String::from_utf8_lossy(&attribute.value).into_owned();
            attributes.push((key, value));
        }
        Ok(Node { name, attributes, ..Node::default() })
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A schema.
pub(crate) struct Xsd {
    elements: HashMap<String, Type>,
    patterns: HashMap<String, Regex>,
}

/// What an element holds.
struct Type {
    /// Name, type, and whether it has to be there.
    attributes: Vec<(String, String, bool)>,
    /// Over the names of children, each as `<name>`.
    content: Regex,
    has_text: bool,
}

impl Xsd {
    pub(crate) fn read(text: &str) -> Xsd {
        let root = Node::parse(text).expect("a schema is XML");
        let mut xsd = Xsd { elements: HashMap::new(), patterns: HashMap::new() };
        let named = |kind: &'static str| root.children.iter().filter(move |node| node.name == kind);
        for node in named("xs:simpleType") {
            let pattern = node.children[0].children[0].get("value").expect("a pattern");
            let pattern = Regex::new(&format!("^(?:{pattern})$")).expect("a pattern");
            xsd.patterns.insert(node.get("name").expect("a name").to_owned(), pattern);
        }
        let types: HashMap<&str, &Node> =
            named("xs:complexType").map(|node| (node.get("name").expect("a name"), node)).collect();
        for node in named("xs:element") {
            let of = match node.get("type") {
                Some("xs:string") => Type { attributes: Vec::new(), content: empty(), has_text: true },
                Some(name) => complex(types[name]),
                None => complex(&node.children[0]),
            };
            xsd.elements.insert(node.get("name").expect("a name").to_owned(), of);
        }
        xsd
    }

    /// What is wrong with a document whose root is `root`.
    pub(crate) fn complaints(&self, root: &Node) -> Vec<String> {
        let mut found = Vec::new();
        self.check(root, &mut found);
        found
    }

    fn check(&self, node: &Node, found: &mut Vec<String>) {
        let name = &node.name;
        let Some(of) = self.elements.get(name) else {
            found.push(format!("<{name}> is not in the schema"));
            return;
        };
        for (key, value) in &node.attributes {
            match of.attributes.iter().find(|(known, ..)| known == key) {
                None => found.push(format!("<{name}> has no attribute {key}")),
                Some((_, kind, _)) if kind == "xs:string" => {}
                Some((_, kind, _)) if self.patterns[kind].is_match(value) => {}
                Some(_) => found.push(format!("<{name} {key}=\"{value}\"> is not of its type")),
            }
        }
        let missing = of.attributes.iter().filter(|(key, _, is_required)| *is_required && node.get(key).is_none());
        found.extend(missing.map(|(key, ..)| format!("<{name}> lacks {key}")));
        let children: String = node.children.iter().map(|child| format!("<{}>", child.name)).collect();
        if !of.content.is_match(&children) {
            found.push(format!("<{name}> cannot hold {}", &children[..children.len().min(200)]));
        }
        if !of.has_text && !node.text.trim().is_empty() {
            found.push(format!("<{name}> holds text"));
        }
        node.children.iter().for_each(|child| self.check(child, found));
    }
}

fn empty() -> Regex {
    Regex::new("^$").expect("a pattern")
}

fn complex(node: &Node) -> Type {
    let attributes = node.children.iter().filter(|child| child.name == "xs:attribute");
    let attributes = attributes.map(|child| {
        let text = |key: &str| child.get(key).unwrap_or_default().to_owned();
        (text("name"), text("type"), child.get("use") == Some("required"))
    });
    let content = node.children.iter().find(|child| child.name != "xs:attribute").map(particle).unwrap_or_default();
    Type {
        attributes: attributes.collect(),
        content: Regex::new(&format!("^(?:{content})$")).expect("a content model"),
        has_text: node.get("mixed") == Some("true"),
    }
}

/// A content model as a regular expression.
fn particle(node: &Node) -> String {
    let parts = || node.children.iter().map(particle);
    let inner = match node.name.as_str() {
        "xs:sequence" => parts().collect::<String>(),
        "xs:choice" => parts().collect::<Vec<_>>().join("|"),
        "xs:element" => format!("<{}>", node.get("ref").or(node.get("name")).expect("a name")),
        other => panic!("{other} is no part of a schema that is read here"),
    };
    let times = match (node.get("minOccurs").unwrap_or("1"), node.get("maxOccurs").unwrap_or("1")) {
        ("0", "unbounded") => "*",
        ("1", "unbounded") => "+",
        ("0", "1") => "?",
        ("1", "1") => "",
        other => panic!("{other:?} times is read nowhere here"),
    };
    format!("(?:{inner}){times}")
}

//! Reads the two forms that have a line for each figure: `name value` listings and `deviceQuery` dumps.

use nom::bytes::complete::{tag, tag_no_case, take_while, take_while1};
use nom::character::complete::{char, digit1, space0};
use nom::combinator::opt;
use nom::sequence::{delimited, preceded};
use nom::{IResult, Parser};

use super::Problem;
use super::facts::{Facts, Key};

/// No key is longer than this; what follows in a line cannot be part of one.
const LONGEST_KEY: usize = 100;

/// Reads the lines of the first device; only the names of further ones are kept.
pub(super) fn read(text: &str) -> Result<Facts, Problem> {
    let mut reader = Reader::default();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        reader.line(line.trim_end(), at)?;
        at += line.len();
    }
    Ok(reader.facts)
}

#[derive(Default)]
struct Reader {
    facts: Facts,
    /// Whether the name came from a line of its own, so that another such line starts another device.
    has_name_line: bool,
    /// Whether a further device has begun, of which only the name is wanted.
    is_past_first: bool,
}

impl Reader {
    fn line(&mut self, line: &str, at: usize) -> Result<(), Problem> {
        if let Ok((_, name)) = device_header(line) {
            self.header(name);
            return Ok(());
        }
        if let Ok((_, count)) = multiprocessors(line) {
            return self.number(Key::Sms, count, at + offset(line, count), "");
        }
        let Some((key, rest)) = known_key(line) else { return Ok(()) };
        let (unit, rest) = unit_of_key(rest);
        let (value, is_separated) = value(rest);
        if key == Key::Name {
            self.name(value);
            return Ok(());
        }
        // A blank and then words: the line is about something else that begins with the same words.
        if !is_separated && !is_meant_as_value(key, value) {
            return Ok(());
        }
        self.number(key, value, at + offset(line, value), unit)
    }

    fn number(&mut self, key: Key, value: &str, at: usize, unit: &str) -> Result<(), Problem> {
        if self.is_past_first { Ok(()) } else { self.facts.read(key, value, at, unit) }
    }

    /// `Device 1: "NVIDIA A100"` starts a device.
    fn header(&mut self, name: &str) {
        if self.facts.has_numbers() || self.is_past_first {
            self.is_past_first = true;
            self.facts.others.push(name.to_owned());
        } else if !name.is_empty() {
            self.facts.name = Some(name.to_owned());
        }
    }

    fn name(&mut self, name: &str) {
        let name = name.trim_matches(['"', '\'', ',']).trim();
        if name.is_empty() {
            return;
        }
        if self.is_past_first || (self.has_name_line && self.facts.has_numbers()) {
            self.is_past_first = true;
            self.facts.others.push(name.to_owned());
        } else if !self.has_name_line {
            self.has_name_line = true;
            self.facts.name = Some(name.to_owned());
        }
    }
}

/// Whether what follows a key and a blank was written as its value, be it readable or not.
fn is_meant_as_value(key: Key, value: &str) -> bool {
    let is_number = value.starts_with(|c: char| c.is_ascii_digit() || "(+-.".contains(c));
    let is_word = !value.is_empty() && !value.contains(char::is_whitespace);
    let is_no_number = ["nan", "inf", "infinity"].iter().any(|word| value.eq_ignore_ascii_case(word));
    is_number || is_no_number || (is_word && !key.begins_phrases())
}

/// `Device 0: "NVIDIA A100"`.
fn device_header(line: &str) -> IResult<&str, &str> {
    let (rest, _) = (space0, tag_no_case("device"), space0, opt(digit1), space0, char(':')).parse(line)?;
    let name = rest.trim().trim_matches('"').trim();
    Ok(("", name))
}

/// `(108) Multiprocessors, ( 64) CUDA Cores/MP`: the figure stands before its name.
fn multiprocessors(line: &str) -> IResult<&str, &str> {
    let count = delimited((space0, char('('), space0), digit1, (space0, char(')'), space0));
    let (rest, count) = (count, tag("Multiprocessors")).parse(line).map(|(rest, (count, _))| (rest, count))?;
    Ok((rest, count))
}

/// The longest known key that the line begins with, and what follows it. `prop.` and the like in front do not matter.
fn known_key(line: &str) -> Option<(Key, &str)> {
    let start = line.len() - without_member_access(line).len();
    let line = &line[start..];
    let ends = line.char_indices().map(|(index, _)| index).chain([line.len()]);
    ends.take_while(|end| *end <= LONGEST_KEY)
        .filter(|end| line[..*end].ends_with(|c: char| c.is_ascii_alphanumeric()))
        .filter(|end| line[*end..].chars().next().is_none_or(ends_key))
        .filter_map(|end| Some((Key::spelled(&line[..end])?, &line[end..])))
        .last()
}

fn ends_key(c: char) -> bool {
    c.is_whitespace() || matches!(c, ':' | '=' | '"' | '\'' | ',' | '(')
}

/// `prop.warpSize` without `prop.`
fn without_member_access(line: &str) -> &str {
    let line = line.trim_start();
    let word = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).next().unwrap_or("");
    match word.rfind('.') {
        Some(dot) if word.starts_with(|c: char| c.is_ascii_alphabetic()) => &line[dot + 1..],
        _ => line,
    }
}

/// The unit in brackets after a key, as in `shared memory per SM (KB): 164`, and what follows; else no unit.
fn unit_of_key(rest: &str) -> (&str, &str) {
    let unit = take_while1(|c: char| c.is_ascii_alphabetic());
    let parsed: IResult<&str, &str> = delimited((space0, char('('), space0), unit, (space0, char(')'))).parse(rest);
    parsed.map_or(("", rest), |(rest, unit)| (unit, rest))
}

/// The value after a key, and whether `:` or `=` stands between them.
fn value(rest: &str) -> (&str, bool) {
    let mut separators = preceded(
        take_while(|c: char| c == '"' || c == '\''),
        take_while(|c: char| c.is_whitespace() || ":=".contains(c)),
    );
    let parsed: IResult<&str, &str> = separators.parse(rest);
    match parsed {
        Ok((value, separators)) => (value, separators.contains([':', '='])),
        Err(_) => (rest, false),
    }
}

/// Where `part`, which is a piece of `line`, begins in it.
fn offset(line: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(line.as_ptr() as usize)
}

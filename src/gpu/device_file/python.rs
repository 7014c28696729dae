//! Reads what Python prints for `torch.cuda.get_device_properties(0)`.

use nom::branch::alt;
use nom::bytes::complete::{tag, take_till, take_while1};
use nom::character::complete::{char, multispace0};
use nom::sequence::{delimited, separated_pair};
use nom::{IResult, Parser};

use super::Problem;
use super::facts::{Facts, Key};

/// The class whose printed form this is; PyTorch puts an underscore in front.
const CLASS: &str = "DeviceProperties(";

/// Whether the text holds such a line.
pub(super) fn is_python(text: &str) -> bool {
    text.contains(CLASS)
}

/// Reads the first device; only the names of further ones are kept.
pub(super) fn read(text: &str) -> Result<Facts, Problem> {
    let mut facts = Facts::default();
    for (index, (start, _)) in text.match_indices(CLASS).enumerate() {
        let at = start + CLASS.len();
        let mut fields = Fields { rest: &text[at..] };
        for (key, value) in fields.by_ref() {
            match Key::spelled(key) {
                Some(Key::Name) if index > 0 => facts.others.push(value.to_owned()),
                Some(Key::Name) => facts.name = Some(value.to_owned()),
                Some(key) if index == 0 => facts.read(key, value, position(text, value), "")?,
                _ => {}
            }
        }
        if index == 0 && !fields.rest.trim_start().starts_with(')') {
            return Err(breaks_off(text.len() - fields.rest.len(), text));
        }
    }
    Ok(facts)
}

fn position(text: &str, part: &str) -> usize {
    (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

fn breaks_off(at: usize, text: &str) -> Problem {
    let end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
    Problem {
        message: "the device properties cannot be read to their end".to_owned(),
        label: "expected `name=value` or `)`".to_owned(),
        help: "give all of what `print(torch.cuda.get_device_properties(0))` prints".to_owned(),
        span: at..end,
    }
}

/// The `name=value` pairs up to the closing bracket.
struct Fields<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<(&'a str, &'a str)> {
        let (rest, pair) = field(self.rest).ok()?;
        self.rest = rest;
        Some(pair)
    }
}

/// `major=8,` with its comma, where there is one.
fn field(text: &str) -> IResult<&str, (&str, &str)> {
    let name = take_while1(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let plain = take_till(|c: char| matches!(c, ',' | ')' | '\n'));
    let (rest, (_, pair)) =
        (multispace0, separated_pair(name, char('='), alt((quoted('\''), quoted('"'), plain)))).parse(text)?;
    let comma: IResult<&str, &str> = tag(",")(rest);
    Ok((comma.map_or(rest, |(rest, _)| rest), pair))
}

fn quoted<'a>(mark: char) -> impl Parser<&'a str, Output = &'a str, Error = nom::error::Error<&'a str>> {
    delimited(char(mark), take_till(move |c| c == mark || c == '\n'), char(mark))
}

//! What is said of functions whose branches nothing is said of.

use super::excerpt::short_path;
use crate::model::symbol;
use crate::rules::Context;

/// Longest path, in columns.
const PATH: usize = 60;

/// How many functions were not followed, and the first of them; nothing where all were.
pub(super) fn not_followed(context: &Context<'_>) -> Option<String> {
    let found = context.numbers.branches.not_followed(context.report)?;
    let name = symbol::short(context.report.names.get(found.first));
    let path = symbol::printable(context.report.file_of(found.place)).into_owned();
    let path = short_path(&path, PATH);
    let line = if found.place.line > 0 { format!(":{}", found.place.line) } else { String::new() };
    let why = "too long, nested too deeply or torn by #if: nothing is said of branches";
    Some(match found.count {
        1 => format!("1 function was not followed, `{name}` ({path}{line}); it is {why} in it"),
        count => format!("{count} functions were not followed, first `{name}` ({path}{line}); they are {why} in them"),
    })
}

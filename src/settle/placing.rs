//! Where a person is sent: of what a log or PTX says of a kernel whose source is known, to the line that can be changed.

use crate::finding::{Finding, Hit, Label, Subject};
use crate::model::{Declaration, Place};
use crate::rules::Context;

/// Puts a finding on a kernel to the kernel's declaration, and what it was read off beside it.
pub(super) fn place(context: &Context<'_>, hit: &Hit, finding: &mut Finding) {
    let Some(declared) = declared(context, hit) else { return };
    let printed = match finding.label.take() {
        Some(label) if is_in_source(context, label.quote.place) => {
            finding.label = Some(label);
            return;
        }
        printed => printed,
    };
    let says = printed.as_ref().map_or_else(String::new, |label| label.text.clone());
    finding.label = Some(context.declared_label(declared, says));
    let printed = printed.map(|label| Label { text: who(context, label.quote.place).to_owned(), ..label });
    let launch = context.judged_of(hit).and_then(|judged| context.launched_at(judged.site));
    finding.beside.extend(printed.into_iter().chain(launch));
}

/// The declaration of the kernel that a hit is about.
fn declared<'a>(context: &Context<'a>, hit: &Hit) -> Option<&'a Declaration> {
    let report = context.report;
    if report.families.is_empty() {
        return None;
    }
    match hit.subject {
        Subject::Kernel(at) => report.declared(at as usize),
        Subject::Message(_) => {
            let message = context.message_of(hit).filter(|message| !message.kind.fails_build())?;
            context.family_named(message.kernel?)?.main(report)
        }
        _ => None,
    }
}

fn is_in_source(context: &Context<'_>, place: Place) -> bool {
    place.input >= Place::SOURCE || context.report.inputs.get(place.input as usize).is_some_and(|input| input.is_source)
}

/// Whose words stand at `place`.
fn who(context: &Context<'_>, place: Place) -> &'static str {
    let is_ptx = context.report.modules.iter().any(|module| module.input == place.input);
    if is_ptx { "ptx" } else { "log" }
}

//! A source as scanned: its tokens, the heads of its device functions and its launches, before anything has a value.

use super::aliases::Aliases;
use super::code::Code;
use super::conditions::Conditions;
use super::heads::{Head, head};
use super::launches::{self, Launch};
use super::lexer::Kind;

/// What a text, or the body of a macro, holds.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// Its tokens.
    pub code: Code,
    /// The heads of its device functions, in order.
    pub heads: Vec<Head>,
    /// Its launches, in order.
    pub launches: Vec<Launch>,
    /// Whether the text is for AMD's GPUs.
    pub is_hip: bool,
    attributes: Vec<usize>,
}

impl Source {
    /// Reads `text[from..to]`, which is the body of a macro where `in_macro`.
    pub(super) fn read(&mut self, text: &[u8], from: usize, to: usize, in_macro: bool, aliases: &Aliases) {
        self.code.read(text, from, to, Conditions::new(self.is_hip));
        self.heads.clear();
        self.launches.clear();
        self.attributes.clear();
        for (start, end) in aliases.places(text.get(from..to).unwrap_or_default()) {
            let (start, end) = (start + from, end + from);
            let token = self.code.tokens.partition_point(|token| (token.end as usize) <= start);
            self.sign(text, token, (start, end), in_macro, aliases);
        }
        self.read_heads(text, in_macro, aliases);
    }

    fn read_heads(&mut self, text: &[u8], in_macro: bool, aliases: &Aliases) {
        let mut behind = 0;
        for at in 0..self.attributes.len() {
            let attribute = self.attributes[at];
            if attribute < behind {
                continue;
            }
            match head(&self.code, text, aliases, attribute, in_macro) {
                Ok(found) => {
                    behind = found.parameters.end;
                    self.heads.push(found);
                }
                Err(place) => behind = place,
            }
        }
    }

    /// Forgets what was read.
    pub(super) fn forget(&mut self) {
        self.code.read(&[], 0, 0, Conditions::default());
        self.heads.clear();
        self.launches.clear();
    }

    /// Reads a text without device code.
    pub(super) fn read_plain(&mut self, text: &[u8]) {
        self.code.read(text, 0, text.len(), Conditions::new(self.is_hip));
        self.heads.clear();
        self.launches.clear();
    }

    /// Looks at a sign of device code, which is in the token `at` if that is not dead or in a comment.
    fn sign(&mut self, text: &[u8], at: usize, (start, end): (usize, usize), in_macro: bool, aliases: &Aliases) {
        let Some(token) = self.code.tokens.get(at) else { return };
        let (first, last) = (token.start as usize, token.end as usize);
        if first > start || last < end {
            return;
        }
        match token.kind {
            Kind::Launch => self.launches.extend(launches::chevrons(&self.code, text, at, in_macro)),
            Kind::Word => {
                let meaning = aliases.meaning(self.code.text(at, text));
                if meaning.global || meaning.device {
                    if self.code.is_for_device(at) {
                        self.attributes.push(at);
                    }
                } else {
                    self.launches.extend(launches::call(&self.code, text, at));
                }
            }
            _ => {}
        }
    }
}

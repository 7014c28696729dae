//! What is wrong with a PTX file, at its place.

use std::fmt::{self, Display};

use miette::{Diagnostic, LabeledSpan, SourceCode};

use crate::model::symbol;
use crate::parse::ptx::PtxFault;
use crate::report::Excerpt;

/// A PTX file that could not be read to its end.
#[derive(Debug)]
pub(super) struct BrokenPtx {
    fault: PtxFault,
    excerpt: Excerpt,
}

impl BrokenPtx {
    pub(super) fn new(fault: PtxFault) -> BrokenPtx {
        let excerpt = Excerpt::of_line(&fault.name, fault.line, fault.text.clone());
        BrokenPtx { fault, excerpt }
    }

    fn has_text(&self) -> bool {
        !self.fault.text.is_empty()
    }
}

impl Display for BrokenPtx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` cannot be read to its end", symbol::printable(&self.fault.name))?;
        // A label on nothing is not shown.
        if self.has_text() { Ok(()) } else { write!(f, ": line {}: {}", self.fault.line, self.fault.message) }
    }
}

impl std::error::Error for BrokenPtx {}

impl Diagnostic for BrokenPtx {
    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        let help = match self.fault.functions {
            0 => {
                "give PTX as a compiler writes it, whole: `nvcc -ptx -lineinfo`, or `cuobjdump -xptx all` for a library"
                    .to_owned()
            }
            1 => "the function before this place was linted; write the file anew to have the rest".to_owned(),
            count => {
                format!("the {count} functions before this place were linted; write the file anew to have the rest")
            }
        };
        Some(Box::new(help))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.has_text().then_some(&self.excerpt as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.fault.span.clone();
        let label = LabeledSpan::new(Some(self.fault.message.clone()), span.start, span.len());
        Some(Box::new(std::iter::once(label)))
    }
}

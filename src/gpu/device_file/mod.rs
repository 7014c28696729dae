//! A file with the figures of one device: a `name value` listing of `cudaDeviceProp`, a `deviceQuery` dump, or what
//! Python prints for `torch.cuda.get_device_properties(0)`.
//!
//! Such a file tells the limits that the runtime reports. Granularities it does not tell: they come from the table of
//! its compute capability, and are assumed, and said to be, where that cannot be known.

mod build;
mod facts;
mod lines;
mod python;

use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, NamedSource, SourceSpan};
use thiserror::Error;

use super::names::Gpu;

/// A device file is a page of text; what is larger is something else.
pub(super) const MAX_BYTES: u64 = 1 << 20;

/// The file does not tell what it must, or tells it in a way that cannot be read.
#[derive(Debug, Clone, Error, Diagnostic)]
#[error("{message}")]
pub struct DeviceFileError {
    message: String,
    label: String,
    #[help]
    help: String,
    #[source_code]
    file: Arc<NamedSource<String>>,
    #[label("{label}")]
    span: SourceSpan,
}

/// What is wrong and where, before the file is attached to it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Problem {
    message: String,
    label: String,
    help: String,
    span: Range<usize>,
}

impl Problem {
    fn in_file(self, name: &str, text: String) -> DeviceFileError {
        DeviceFileError {
            message: self.message,
            label: self.label,
            help: self.help,
            file: Arc::new(NamedSource::new(name, text)),
            span: self.span.into(),
        }
    }
}

/// Reads the content of the file called `name`.
pub(super) fn read(name: &str, content: &[u8]) -> Result<Gpu, DeviceFileError> {
    let text = String::from_utf8_lossy(content).into_owned();
    let facts = if python::is_python(&text) { python::read(&text) } else { lines::read(&text) };
    match facts.and_then(|facts| build::gpu(name, &text, facts)) {
        Ok(gpu) => Ok(gpu),
        Err(problem) => Err(problem.in_file(name, text)),
    }
}

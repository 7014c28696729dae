//! What `--gpu` names: a product, an architecture, a compute capability, or a file with the figures of a device.

use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use thiserror::Error;

use super::device_file::{self, DeviceFileError};
use super::product::{Device, Product, normalised, products, products_named};
use super::target::{Target, compute_capability};
use crate::model::{Arch, Kernel, Suffix};

/// Product names shown in an error at most.
const SHOWN: usize = 8;

/// How alike a name must be to be offered as what was meant, 0 to 1.
const ALIKE: f64 = 0.75;

/// A GPU to compute for.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpu {
    /// The name that reports show: `h100-sxm5`, `sm_90`, or what a device file calls it.
    pub name: String,
    /// The compute capability; `None` for a device file that does not tell it.
    pub arch: Option<Arch>,
    /// The limits.
    pub target: Cow<'static, Target>,
    /// The product, when one was named.
    pub product: Option<&'static Product>,
    /// Figures beside the limits; all unknown for a plain architecture.
    pub device: Device,
    /// Keys of the figures that were assumed because a device file does not tell its compute capability.
    pub assumed: Vec<&'static str>,
    /// What a report should say about how a device file was read; empty for anything else.
    pub notes: Vec<String>,
}

impl Gpu {
    /// The GPU that `text` names: a product (case, blanks, hyphens, underscores and the brands in front do not matter,
    /// and a beginning that only one product has is enough), `sm_90`, `9.0`, or a device file.
    ///
    /// # Errors
    /// When nothing or more than one product has that name, and when a device file cannot be read or understood.
    pub fn resolve(text: &str) -> Result<Gpu, GpuError> {
        Gpu::resolve_in(text, Path::new(""))
    }

    /// The same where a device file's path is relative to `folder`.
    ///
    /// # Errors
    /// As [`Gpu::resolve`].
    pub fn resolve_in(text: &str, folder: &Path) -> Result<Gpu, GpuError> {
        if let Some(arch) = architecture(text.trim()) {
            if !has_target(arch) {
                return Err(GpuError::NoTarget { arch, device: arch.device().to_string() });
            }
            return Gpu::of(arch)
                .ok_or_else(|| GpuError::UnknownArch { arch, nearest: Target::nearest(arch).to_string() });
        }
        let wanted = normalised(text);
        if let Some(product) = exact(&wanted) {
            return Ok(Gpu::from(product));
        }
        match device_file_path(text, folder) {
            Some(path) => read_device_file(&path),
            None => by_beginning(text, &wanted),
        }
    }

    /// The device file that `text` names, relative to `folder`; `None` where it names a product or an architecture.
    #[must_use]
    pub fn device_file(text: &str, folder: &Path) -> Option<PathBuf> {
        let named = architecture(text.trim()).is_some() || exact(&normalised(text)).is_some();
        if named { None } else { device_file_path(text, folder) }
    }

    /// The plain architecture of a kernel; `None` for one that the tables lack.
    #[must_use]
    pub fn of(arch: Arch) -> Option<Gpu> {
        let target = Target::of(arch)?;
        Some(Gpu {
            name: arch.device().to_string(),
            arch: Some(target.arch),
            target: Cow::Borrowed(target),
            product: None,
            device: Device::default(),
            assumed: Vec::new(),
            notes: Vec::new(),
        })
    }

    /// Whether it runs code compiled for `code`. A device that does not tell its compute capability is taken to.
    #[must_use]
    pub fn runs(&self, code: Arch) -> bool {
        self.arch.is_none_or(|arch| code.runs_on(arch))
    }

    /// Whether a kernel can be launched on it: machine code has to run there, PTX alone has to compile for it.
    #[must_use]
    pub fn takes(&self, kernel: &Kernel) -> bool {
        match (kernel.arch, self.arch) {
            (Some(code), Some(arch)) if !kernel.is_in_log() => code.compiles_for(arch),
            (Some(code), _) => self.runs(code),
            (None, _) => true,
        }
    }
}

impl From<&'static Product> for Gpu {
    fn from(product: &'static Product) -> Gpu {
        let target = Target::of(product.arch).expect("bug: a product has an unknown compute capability");
        Gpu {
            name: product.id.clone(),
            arch: Some(target.arch),
            target: Cow::Borrowed(target),
            product: Some(product),
            device: product.device,
            assumed: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// The text names no GPU.
#[derive(Debug, Error, Diagnostic)]
pub enum GpuError {
    /// Nothing has that name.
    #[error("no GPU is called `{text}`")]
    Unknown {
        /// What was asked for.
        text: String,
        /// What may have been meant.
        #[help]
        help: String,
    },
    /// Several products begin like that.
    #[error("`{text}` can be {count} GPUs")]
    #[diagnostic(help("say which: {candidates}"))]
    Ambiguous {
        /// What was asked for.
        text: String,
        /// How many products it can be.
        count: usize,
        /// Their names.
        candidates: String,
    },
    /// An architecture without an entry in the tables.
    #[error("no limits are known for {arch}")]
    #[diagnostic(help(
        "the nearest that is known is {nearest}; `warplint gpus` lists all, and a device file can describe others"
    ))]
    UnknownArch {
        /// What was asked for.
        arch: Arch,
        /// The nearest known one.
        nearest: String,
    },
    /// A suffix that the architecture does not have.
    #[error("no compiler has the target {arch}")]
    #[diagnostic(help(
        "`a` follows architectures from sm_90 on, and `f` those from sm_100 on; the GPU itself is {device}, whatever its code"
    ))]
    NoTarget {
        /// What was asked for.
        arch: Arch,
        /// The same without a suffix.
        device: String,
    },
    /// The file cannot be read.
    #[error("cannot read the device file {}", path.display())]
    #[diagnostic(help(
        "`--gpu` takes a product such as `a100`, an architecture such as `sm_90`, or a file with device figures"
    ))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        error: std::io::Error,
    },
    /// The file cannot be a list of device figures.
    #[error("{} is too large for a device file, which has {} bytes at most", path.display(), device_file::MAX_BYTES)]
    #[diagnostic(help("give the output of `deviceQuery` for one machine, or a list of `name value` lines"))]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file was read and not understood.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] DeviceFileError),
}

/// `sm_90a`, `compute_90` or `9.0`.
fn architecture(text: &str) -> Option<Arch> {
    text.to_ascii_lowercase().parse().ok().or_else(|| compute_capability(text))
}

/// Whether compilers have the target of an architecture with its suffix.
fn has_target(arch: Arch) -> bool {
    match arch.suffix {
        None => true,
        Some(Suffix::Specific) => arch.at_least(9, 0),
        Some(Suffix::Family) => arch.at_least(10, 0),
    }
}

/// The architecture that was meant by what is nearly its name: `90`, `sm90`, `SM 9.0`, `cc90a`.
fn meant_architecture(text: &str) -> Option<Arch> {
    let bare = normalised(text);
    let number = ["sm", "compute", "cc"].iter().find_map(|prefix| bare.strip_prefix(prefix)).unwrap_or(&bare);
    let arch = Arch::from_bytes(format!("sm_{number}").as_bytes())?;
    (has_target(arch) && Target::of(arch).is_some()).then_some(arch)
}

fn exact(wanted: &str) -> Option<&'static Product> {
    if wanted.is_empty() {
        return None;
    }
    products_named(|name| normalised(name) == wanted).next()
}

/// The product that a device's own name belongs to.
pub(super) fn product_called(name: &str) -> Option<&'static Product> {
    exact(&normalised(name))
}

fn by_beginning(text: &str, wanted: &str) -> Result<Gpu, GpuError> {
    let begins = |name: &str| !wanted.is_empty() && normalised(name).starts_with(wanted);
    let found: Vec<&'static Product> = products_named(begins).collect();
    match found.as_slice() {
        [] => Err(GpuError::Unknown { text: text.to_owned(), help: did_you_mean(wanted) }),
        [product] => Ok(Gpu::from(*product)),
        several => Err(GpuError::Ambiguous {
            text: text.to_owned(),
            count: several.len(),
            candidates: listed(several.iter().map(|product| product.id.as_str())),
        }),
    }
}

fn did_you_mean(wanted: &str) -> String {
    const WAYS: &str = "`warplint gpus` lists them all; `sm_90`, `9.0` or a file with device figures will do too";
    let near = meant(wanted);
    if near.is_empty() { WAYS.to_owned() } else { format!("did you mean {}? {WAYS}", alternatives(&near)) }
}

/// What may have been meant, the nearest first: an architecture, products of which the text is a part, else those that are
/// called alike.
fn meant(wanted: &str) -> Vec<String> {
    if let Some(arch) = meant_architecture(wanted) {
        return vec![arch.to_string()];
    }
    let mut near: Vec<(f64, &str)> = products()
        .filter_map(|product| {
            let alike = product.names().map(|name| likeness(&normalised(name), wanted)).fold(0.0, f64::max);
            (alike >= ALIKE).then_some((alike, product.id.as_str()))
        })
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    if near.first().is_some_and(|(alike, _)| *alike > 1.0) {
        near.retain(|(alike, _)| *alike > 1.0);
    }
    near.into_iter().take(OFFERED).map(|(_, name)| name.to_owned()).collect()
}

/// How alike a product's name is, 0 to 1; over 1 where the text is a part of it, the more the larger a part.
fn likeness(name: &str, wanted: &str) -> f64 {
    if wanted.len() >= PART && name.contains(wanted) {
        return 1.0 + wanted.len() as f64 / name.len() as f64;
    }
    strsim::jaro_winkler(name, wanted)
}

/// Shortest part of a name that may stand for it.
const PART: usize = 3;

/// Names that are offered at most.
const OFFERED: usize = 3;

fn alternatives(near: &[String]) -> String {
    let names: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(SHOWN);
    let shown: Vec<&str> = names.take(SHOWN).collect();
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

fn device_file_path(text: &str, folder: &Path) -> Option<PathBuf> {
    let path = folder.join(text);
    (looks_like_path(text) || path.is_file()).then_some(path)
}

fn looks_like_path(text: &str) -> bool {
    text.contains(['/', '\\']) || Path::new(text).extension().is_some_and(|end| end == "txt" || end == "log")
}

fn read_device_file(path: &Path) -> Result<Gpu, GpuError> {
    let unreadable = |error| GpuError::Unreadable { path: path.to_owned(), error };
    let mut content = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(device_file::MAX_BYTES + 1).read_to_end(&mut content).map_err(unreadable)?;
    if content.len() as u64 > device_file::MAX_BYTES {
        return Err(GpuError::TooLarge { path: path.to_owned() });
    }
    Ok(device_file::read(&path.display().to_string(), &content)?)
}

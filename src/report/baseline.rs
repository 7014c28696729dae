//! What a baseline was written with, in a line or two.

use std::io::{self, Write};

use crate::baseline::{Baseline, Counts};

/// A baseline that was written or pruned.
pub struct Written<'a> {
    /// The file as shown.
    pub name: &'a str,
    /// Whether it was pruned.
    pub is_prune: bool,
    /// Kernels of this build.
    pub kernels: usize,
    /// Findings of this build.
    pub findings: u64,
    /// What is in it now.
    pub next: &'a Baseline,
    /// What became of its entries.
    pub counts: Counts,
    /// Kernels whose figures may be another's.
    pub left_out: usize,
    /// Whether a lint looks for it: the configuration names it, or the command line does.
    pub is_named: bool,
}

impl Written<'_> {
    /// Says so.
    ///
    /// # Errors
    /// When `out` cannot be written to.
    pub fn render(&self, out: &mut dyn Write) -> io::Result<()> {
        let (name, counts) = (self.name, &self.counts);
        if self.is_prune {
            let dropped = match (counts.dropped as u64, counts.findings_dropped) {
                (0, 0) => "nothing to drop".to_owned(),
                (kernels, findings) => format!("{} dropped", both(kernels, findings)),
            };
            let left = both(self.next.kernel_count() as u64, self.next.finding_count());
            writeln!(out, "{name}: {dropped}, {left} left")?;
        } else {
            writeln!(out, "wrote {} to {name}", both(self.kernels as u64, self.findings))?;
            let parts = [
                (counts.new as u64, "new kernel", "new kernels"),
                (counts.changed as u64, "kernel with other figures", "kernels with other figures"),
                (
                    counts.kept as u64,
                    "kernel kept that this build did not have",
                    "kernels kept that this build did not have",
                ),
                (counts.findings_dropped, "finding gone", "findings gone"),
            ];
            let said: Vec<String> = parts
                .into_iter()
                .filter(|(count, ..)| *count > 0)
                .map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many }))
                .collect();
            // A first baseline has nothing to tell apart.
            if counts.new < self.next.kernels.len() && !said.is_empty() {
                writeln!(out, "{}", said.join(", "))?;
            }
        }
        if !self.is_named {
            writeln!(out, "`baseline = \"{name}\"` in warplint.toml holds every run against it")?;
        }
        match self.left_out {
            0 => Ok(()),
            1 => writeln!(out, "1 kernel is left out: interleaved output leaves open whose its figures are"),
            count => {
                writeln!(out, "{count} kernels are left out: interleaved output leaves open whose their figures are")
            }
        }
    }
}

fn both(kernels: u64, findings: u64) -> String {
    let counted = |count: u64, word: &str| if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") };
    format!("{} and {}", counted(kernels, "kernel"), counted(findings, "finding"))
}

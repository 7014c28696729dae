//! Records of `ptxas -v`, for the tests of rules.

/// The record of a kernel `k` for `arch` that does not spill, with `used` after the word `Used`.
pub(super) fn record(arch: &str, used: &str) -> String {
    named("k", arch, used)
}

/// The same of a kernel with that name.
pub(super) fn named(name: &str, arch: &str, used: &str) -> String {
    format!(
        "ptxas info    : Compiling entry function '{name}' for '{arch}'\n\
         ptxas info    : Function properties for {name}\n    \
         0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
         ptxas info    : Used {used}\n"
    )
}

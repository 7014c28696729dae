//! What is read of linked code: the lines of the linker, and the listing of `cuobjdump`.

use super::index::Key;
use super::open::MAX_OPEN;
use super::{Assembler, figures};
use crate::model::{Arch, Evidence, Kernel, Kind, LinkSource, Linked, NameId, Place, Unread};
use crate::parse::listing::Listed;

/// Where a `cuobjdump` listing stands.
#[derive(Default)]
pub(super) struct Listing {
    arch: Option<Arch>,
    /// The architecture came after the last listing and before this one.
    fresh: bool,
    function: Option<(NameId, Place)>,
}

impl Assembler<'_> {
    pub(crate) fn link_properties(&mut self, name: &[u8], target: Option<Arch>, place: Place) {
        self.flush_function();
        let name = self.report.names.intern(name);
        self.stream.awaiting_link.push((name, target, place));
        if self.stream.awaiting_link.len() > MAX_OPEN {
            self.stream.awaiting_link.remove(0);
        }
    }

    pub(crate) fn link_used(&mut self, text: &[u8], target: Option<Arch>, place: Place) {
        self.flush_function();
        let quote = self.quote(text, place);
        let Some(usage) = self.parsed.usage(quote.text, text) else {
            return self.unread(Unread::Form, text, place);
        };
        if usage.unread_item {
            self.unread(Unread::Item, text, place);
        }
        if usage.unfinished {
            self.unread(Unread::Cut, text, place);
        }
        let candidates = self.stream.awaiting_link.iter().filter(|waiting| waiting.1 == target).count();
        let Some(at) = self.stream.awaiting_link.iter().position(|waiting| waiting.1 == target) else {
            return self.unread(Unread::Nameless, text, place);
        };
        let (name, arch, named_at) = self.stream.awaiting_link.remove(at);
        let mut resources = figures(&usage, usage.unfinished);
        // The linker's one stack figure counts callees; it is the kernel's only one unless ptxas told its own frame.
        resources.stack = usage.cumulative_stack;
        let kernel = Kernel {
            resources,
            ambiguous: candidates > 1,
            frame_ambiguous: candidates > 1,
            linked: true,
            evidence: Evidence { name: Some(named_at), frame: None, usage: Some(quote), head: None },
            family: None,
            ..Kernel::new(Some(name), Kind::Entry, arch)
        };
        self.keep_linked(kernel, LinkSource::Nvlink, quote.text);
    }

    fn keep_linked(&mut self, kernel: Kernel, source: LinkSource, text: NameId) {
        let key = Key {
            name: kernel.name,
            arch: kernel.arch,
            entry: source == LinkSource::Nvlink,
            ambiguous: kernel.ambiguous,
            frame: None,
            usage: Some(text),
            burst: None,
        };
        self.linked.find_or_add(key, &mut self.report.linked, || Linked { kernel, source });
    }

    /// A fatbin header of a `cuobjdump` listing.
    pub(crate) fn listed_arch(&mut self, arch: Option<Arch>) {
        self.stream.listing = Listing { arch, fresh: true, function: None };
    }

    /// The listing of one file starts. Only a header right before it tells its architecture.
    pub(crate) fn begin_listing(&mut self) {
        let arch = self.stream.listing.arch.filter(|_| self.stream.listing.fresh);
        self.stream.listing = Listing { arch, fresh: false, function: None };
    }

    /// What was listed before has nothing to do with what comes.
    pub(crate) fn leave_listing(&mut self) {
        self.stream.listing = Listing::default();
    }

    pub(crate) fn listed_function(&mut self, name: &[u8], place: Place) {
        let name = self.report.names.intern(name);
        self.stream.listing.function = Some((name, place));
    }

    pub(crate) fn listed_figures(&mut self, listed: Listed, text: &[u8], place: Place) {
        let quote = self.quote(text, place);
        if listed.unread_item {
            self.unread(Unread::Item, text, place);
        }
        if listed.cut {
            self.unread(Unread::Cut, text, place);
        }
        let function = self.stream.listing.function.take();
        if function.is_none() {
            self.unread(Unread::Nameless, text, place);
        }
        let kind = if listed.is_entry { Kind::Entry } else { Kind::Function };
        let kernel = Kernel {
            resources: listed.resources,
            unbounded_stack: listed.unbounded_stack,
            linked: true,
            evidence: Evidence { name: function.map(|(_, place)| place), frame: None, usage: Some(quote), head: None },
            family: None,
            ..Kernel::new(function.map(|(name, _)| name), kind, self.stream.listing.arch)
        };
        self.keep_linked(kernel, LinkSource::Cuobjdump, quote.text);
    }
}

#[cfg(test)]
mod tests {
    use crate::model::Report;
    use crate::parse::{Echo, EchoMode, read_log};

    /// The architectures that the listed kernels are read as, and what is passed on.
    fn listed(log: &str) -> (Vec<String>, String) {
        let (mut report, mut rest) = (Report::default(), Vec::new());
        read_log(&mut log.as_bytes(), "x.log", &mut report, &mut Echo::new(EchoMode::Others, &mut rest))
            .expect("a log in memory");
        let arch = |kernel: &crate::model::Kernel| kernel.arch.map_or_else(String::new, |arch| arch.to_string());
        let rest = String::from_utf8_lossy(&rest).into_owned();
        let rest = rest.lines().filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect();
        (report.linked.iter().map(|linked| arch(&linked.kernel)).collect(), rest)
    }

    fn header(code: &str, arch: &str) -> String {
        format!(
            "\nFatbin {code} code:\n================\narch = {arch}\ncode version = [1,8]\nhost = linux\nhas debug info\ncompressed\nidentifier = src/s.cu\nsome new key = 4 of them\nhas something new\nand one more = \n\n"
        )
    }

    const USAGE: &str = "Resource usage:\n Common:\n  GLOBAL:0\n Function k:\n  REG:10 STACK:0 SHARED:1280 LOCAL:0 CONSTANT[0]:536 TEXTURE:0 SURFACE:0 SAMPLER:0\n";

    #[test]
    fn a_header_tells_its_architecture_whatever_fields_it_has() {
        let first = header("elf", "sm_80") + &USAGE.replace("1280", "256");
        let log = first + &header("elf", "sm_90") + USAGE + &header("ptx", "sm_90");
        assert_eq!(listed(&log), (vec!["sm_80".into(), "sm_90".into()], String::new()));
        let other = "x = 1\nhas no header\n";
        assert_eq!(listed(&format!("{other}make: done\n{log}{other}")).1, format!("{other}make: done\n{other}"));
    }

    #[test]
    fn the_architecture_of_ptx_is_none_of_a_cubin_that_follows() {
        let log = header("elf", "sm_80") + &USAGE.replace("1280", "256") + &header("ptx", "sm_90") + USAGE;
        assert_eq!(listed(&log).0, ["sm_80", ""]);
        assert_eq!(listed(&(header("ptx", "sm_90") + USAGE)).0, [""]);
    }
}

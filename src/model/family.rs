//! What sources declare under one name: a kernel's definition, its prototypes and its launches.

use super::{Array, Declaration, LaunchSite, Report, SourceBounds, Stated};

/// Something in a source: its unit, an index into [`Report::units`], and its own index there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spot {
    /// The unit.
    pub unit: u32,
    /// A declaration or a launch of it.
    pub at: u32,
}

/// All that sources say of one kernel, whose instantiations and architectures may be many kernels of a report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Family {
    /// Its declarations: the definition first, where there is one. Never empty.
    pub declarations: Vec<Spot>,
    /// Its launches, in the order of the sources.
    pub launches: Vec<Spot>,
    /// Launches that are of it or of an overload that is called alike.
    pub perhaps_launches: Vec<Spot>,
    /// The kernels that are of it, as indices into [`Report::kernels`].
    pub kernels: Vec<u32>,
    /// Whether other families of the same name exist, so that a launch may be of one of those.
    pub has_rivals: bool,
}

impl Family {
    /// The declaration that a person is sent to: the definition, else the first prototype.
    #[must_use]
    pub fn main<'a>(&self, report: &'a Report) -> Option<&'a Declaration> {
        report.declaration(*self.declarations.first()?)
    }

    /// What the attributes of all declarations say together. What they do not agree on is unknown.
    #[must_use]
    pub fn bounds(&self, report: &Report) -> SourceBounds {
        let all = || self.declarations.iter().filter_map(|spot| report.declaration(*spot)).map(|one| one.bounds);
        let stated = |of: fn(&SourceBounds) -> Stated| all().fold(Stated::No, |known, one| known.with(of(&one)));
        SourceBounds {
            max_threads: stated(|one| one.max_threads),
            min_blocks: stated(|one| one.min_blocks),
            max_cluster: stated(|one| one.max_cluster),
            max_registers: stated(|one| one.max_registers),
            block: all().find_map(|one| one.block),
            cluster: all().find_map(|one| one.cluster),
        }
    }

    /// The arrays of the definition.
    #[must_use]
    pub fn arrays<'a>(&self, report: &'a Report) -> &'a [Array] {
        self.main(report).map_or(&[], |main| &main.arrays)
    }
}

impl Stated {
    /// What two statements on the same thing say together.
    #[must_use]
    pub fn with(self, other: Stated) -> Stated {
        match (self, other) {
            (known, Stated::No) => known,
            (Stated::No, known) => known,
            (one, two) if one == two => one,
            _ => Stated::Unknown,
        }
    }
}

impl Report {
    /// The declaration at `spot`.
    #[must_use]
    pub fn declaration(&self, spot: Spot) -> Option<&Declaration> {
        self.units.get(spot.unit as usize)?.declarations.get(spot.at as usize)
    }

    /// The launch at `spot`.
    #[must_use]
    pub fn launch(&self, spot: Spot) -> Option<&LaunchSite> {
        self.units.get(spot.unit as usize)?.launches.get(spot.at as usize)
    }

    /// The family of the kernel with index `at`.
    #[must_use]
    pub fn family_of(&self, at: usize) -> Option<&Family> {
        self.families.get(self.kernels.get(at)?.family? as usize)
    }

    /// The declaration of the kernel with index `at`, that a person is sent to.
    #[must_use]
    pub fn declared(&self, at: usize) -> Option<&Declaration> {
        self.family_of(at)?.main(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_differ_are_unknown_and_none_is_no_statement() {
        assert_eq!(Stated::As(256).with(Stated::No), Stated::As(256));
        assert_eq!(Stated::No.with(Stated::Unknown), Stated::Unknown);
        assert_eq!(Stated::As(256).with(Stated::As(256)), Stated::As(256));
        assert_eq!(Stated::As(256).with(Stated::As(128)), Stated::Unknown);
        assert_eq!(Stated::No.with(Stated::No), Stated::No);
    }
}

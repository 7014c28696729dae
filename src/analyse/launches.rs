//! The launches that sources show: every site, and those that a kernel of a report is launched at.

use hashbrown::HashMap;

use crate::model::{
    Alike, BlockSize, Bounds, Bytes, Kernel, LaunchSite, Place, Report, SourceBounds, Spot, alike, symbol,
};

/// A launch in a source that was given, or of a kernel of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launched {
    /// Where it stands.
    pub spot: Spot,
    /// What is launched, an index into [`Report::families`]; `None` where that is not sure.
    pub family: Option<u32>,
}

impl Launched {
    /// The launch.
    #[must_use]
    pub fn site<'a>(&self, report: &'a Report) -> Option<&'a LaunchSite> {
        report.launch(self.spot)
    }
}

/// Every launch that the run is about, in the order of the sources: where kernels were left out, those of what remains.
pub(super) fn launches(report: &Report) -> Vec<Launched> {
    let mut families: HashMap<Spot, u32> = HashMap::new();
    for (number, family) in (0..).zip(&report.families) {
        families.extend(family.launches.iter().map(|spot| (*spot, number)));
    }
    let mut all = Vec::new();
    for (unit, one) in (0..).zip(&report.units) {
        for at in 0..super::narrow(one.launches.len()) {
            let spot = Spot { unit, at };
            let family = families.get(&spot).copied();
            let has_kernels = family
                .and_then(|number| report.families.get(number as usize))
                .is_some_and(|one| !one.kernels.is_empty());
            if has_kernels || (!report.is_filtered && one.input < Place::SOURCE) {
                all.push(Launched { spot, family });
            }
        }
    }
    all
}

/// What the launches of one kernel tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sites {
    /// Launches with different constant blocks, or dynamic shared memory, the first of each.
    pub(super) distinct: Vec<Site>,
    /// Dynamic shared memory, where no launch tells a block and all tell this.
    pub(super) dynamic_shared: Option<Bytes>,
}

/// What one launch tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Site {
    pub(super) spot: Spot,
    pub(super) block: BlockSize,
    pub(super) dynamic_shared: Option<Bytes>,
}

/// What the launches of a kernel tell.
pub(super) fn sites(report: &Report, kernel: &Kernel) -> Sites {
    let mut sites = Sites::default();
    let own = own(report, kernel);
    for spot in &own {
        let Some(site) = report.launch(*spot) else { continue };
        let Some(block) = site.block_size() else { continue };
        let is_known = |one: &Site| one.block == block && one.dynamic_shared == site.dynamic_shared;
        if !sites.distinct.iter().any(is_known) {
            sites.distinct.push(Site { spot: *spot, block, dynamic_shared: site.dynamic_shared });
        }
    }
    if sites.distinct.is_empty() {
        let mut told = own.iter().filter_map(|spot| report.launch(*spot)).map(|site| site.dynamic_shared);
        let first = told.next().flatten();
        sites.dynamic_shared = first.filter(|_| told.all(|other| other == first));
    }
    sites
}

/// The launches that may be of this kernel, for a list of them.
#[must_use]
pub fn launches_of(report: &Report, kernel: &Kernel) -> Vec<Spot> {
    let Some(family) = kernel.family.and_then(|number| report.families.get(number as usize)) else { return Vec::new() };
    let Some(arguments) = arguments(report, kernel) else { return family.launches.clone() };
    let is_other = |spot: &Spot| {
        let site = report.launch(*spot);
        let written = site.and_then(|site| site.arguments).map_or(&[][..], |arguments| report.names.get(arguments));
        alike(written, arguments.as_bytes()) == Alike::Other
    };
    family.launches.iter().copied().filter(|spot| !is_other(spot)).collect()
}

/// The template arguments of a kernel; `None` where it has none, or stands for all instantiations, as one does that only
/// sources declare.
fn arguments(report: &Report, kernel: &Kernel) -> Option<String> {
    let family = report.families.get(kernel.family? as usize)?;
    let is_template = family.main(report).is_some_and(|main| main.is_template);
    kernel.name.filter(|_| is_template).and_then(|name| symbol::arguments(report.names.get(name)))
}

/// The launches that are surely of this kernel. Of a template those whose arguments are its own; else all that may be, if
/// they are all alike.
fn own(report: &Report, kernel: &Kernel) -> Vec<Spot> {
    let Some(family) = kernel.family.and_then(|number| report.families.get(number as usize)) else { return Vec::new() };
    let Some(arguments) = arguments(report, kernel) else { return family.launches.clone() };
    let (mut exact, mut others) = (Vec::new(), Vec::new());
    for spot in &family.launches {
        let Some(site) = report.launch(*spot) else { continue };
        let written = site.arguments.map_or(&[][..], |arguments| report.names.get(arguments));
        match alike(written, arguments.as_bytes()) {
            Alike::Same => exact.push(*spot),
            Alike::Perhaps => others.push(*spot),
            Alike::Other => {}
        }
    }
    if !exact.is_empty() {
        return exact;
    }
    let told = |spot: &Spot| report.launch(*spot).map(|site| (site.block, site.dynamic_shared));
    let first = others.first().and_then(told);
    let is_one = first.is_some_and(|(block, _)| block.iter().all(Option::is_some))
        && others.iter().all(|spot| told(spot) == first);
    if is_one { others } else { Vec::new() }
}

/// The attributes of a kernel in its sources as the directives that they become.
pub(super) fn bounds(stated: &SourceBounds) -> Bounds {
    Bounds {
        required: stated.block,
        max_threads: stated.max_threads.known(),
        min_blocks: stated.min_blocks.known(),
        max_registers: stated.max_registers.known(),
        cluster: stated.cluster,
    }
}

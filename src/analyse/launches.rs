//! The launches that sources show: every site, and those that a kernel of a report is launched at.

use hashbrown::{HashMap, HashSet};

use super::instances::{self, Instances};
use crate::model::{BlockSize, Bounds, Bytes, Kernel, LaunchSite, Place, Report, SourceBounds, Spot};

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
    /// The dimensions of the block that all launches tell alike, those too that may be of an overload.
    pub(super) agreed: [Option<u32>; 3],
    /// Whether all of them may be of an overload.
    pub(super) is_perhaps: bool,
}

/// What one launch tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Site {
    pub(super) spot: Spot,
    pub(super) block: BlockSize,
    pub(super) dynamic_shared: Option<Bytes>,
}

/// What the launches of a kernel tell.
pub(super) fn sites(report: &Report, instances: &Instances, kernel: &Kernel) -> Sites {
    let own = match instances.own(report, kernel) {
        instances::Sites::All(all) => Vec::from(all),
        instances::Sites::Some { same, other } => same.iter().copied().chain(other).collect(),
    };
    let family = kernel.family.and_then(|number| report.families.get(number as usize));
    let perhaps = family.map_or(&[][..], |family| &family.perhaps_launches);
    let is_perhaps = own.is_empty();
    let mut sites = Sites { agreed: agreed(report, own.iter().chain(perhaps)), is_perhaps, ..Sites::default() };
    let mut known: HashSet<(BlockSize, Option<Bytes>)> = HashSet::new();
    for spot in &own {
        let Some(site) = report.launch(*spot) else { continue };
        let Some(block) = site.block_size() else { continue };
        if known.insert((block, site.dynamic_shared)) {
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

/// The dimensions of the block that all launches tell alike.
fn agreed<'s>(report: &Report, mut spots: impl Iterator<Item = &'s Spot>) -> [Option<u32>; 3] {
    let block = |spot: &Spot| report.launch(*spot).map_or([None; 3], |site| site.block);
    let mut all = spots.next().map_or([None; 3], block);
    for spot in spots {
        for (one, other) in all.iter_mut().zip(block(spot)) {
            *one = one.filter(|_| *one == other);
        }
    }
    all
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

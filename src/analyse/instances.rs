//! Which launches of a template may be of which of its instantiations, without a look at each pair of the two.

use hashbrown::HashMap;

use crate::model::{Alike, Arguments, Bytes, Kernel, LaunchSite, Report, Spot, symbol};

/// The launches of every template that sources launch with arguments.
#[derive(Debug, Clone, Default)]
pub struct Instances {
    /// By family.
    of_family: HashMap<u32, Template>,
}

/// The launches of one template.
#[derive(Debug, Clone, Default)]
struct Template {
    groups: Vec<Group>,
    /// Groups by what they are the same as, where all their arguments mean the same everywhere.
    plain: HashMap<Vec<u8>, u32>,
    /// All other groups, and those of more arguments than most.
    others: Vec<u32>,
    /// Arguments of the longest list of `plain`.
    longest: usize,
}

/// Launches with the same arguments.
#[derive(Debug, Clone)]
struct Group {
    arguments: Arguments,
    spots: Vec<Spot>,
    /// What all of them tell, if that is the same.
    told: Option<Told>,
}

/// What a launch tells.
type Told = ([Option<u32>; 3], Option<Bytes>);

/// The launches of a kernel.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sites<'i> {
    /// All of its family.
    All(&'i [Spot]),
    /// Some: those whose arguments are its own, and others that may be.
    Some {
        /// The first.
        same: &'i [Spot],
        /// One of the others, where all of these tell the same.
        other: Option<Spot>,
    },
}

fn told(site: &LaunchSite) -> Told {
    (site.block, site.dynamic_shared)
}

impl Instances {
    pub(super) fn new(report: &Report) -> Instances {
        let mut all = Instances::default();
        for (number, family) in (0..).zip(&report.families) {
            let is_template = family.main(report).is_some_and(|main| main.is_template);
            if is_template && !family.kernels.is_empty() && !family.launches.is_empty() {
                all.of_family.insert(number, Template::new(report, &family.launches));
            }
        }
        all
    }

    /// The launches that are surely of this kernel. Of a template those whose arguments are its own; else all that may be,
    /// if they are all alike.
    pub(super) fn own<'i>(&'i self, report: &'i Report, kernel: &Kernel) -> Sites<'i> {
        let Some((template, arguments)) = self.template(report, kernel) else {
            return Sites::All(all_of(report, kernel));
        };
        let (mut same, mut others) = (&[][..], Vec::new());
        for (at, alike) in template.groups_of(&arguments) {
            match alike {
                Alike::Same => same = &template.groups[at as usize].spots,
                Alike::Perhaps => others.push(&template.groups[at as usize]),
                Alike::Other => {}
            }
        }
        let first = others.first().and_then(|group| group.told);
        let is_one = first.is_some_and(|(block, _)| block.iter().all(Option::is_some))
            && others.iter().all(|group| group.told == first);
        let other =
            others.iter().filter_map(|group| group.spots.first().copied()).min_by_key(|spot| (spot.unit, spot.at));
        Sites::Some { same, other: other.filter(|_| is_one && same.is_empty()) }
    }

    /// The launches that may be of this kernel, in the order of the sources; of very many, the first.
    #[must_use]
    pub fn launches_of(&self, report: &Report, kernel: &Kernel, most: usize) -> Launches {
        let Some((template, arguments)) = self.template(report, kernel) else {
            let all = all_of(report, kernel);
            return Launches { spots: all.iter().copied().take(most).collect(), count: all.len() };
        };
        let mut spots = Vec::new();
        let mut count = 0;
        for (at, alike) in template.groups_of(&arguments) {
            if alike != Alike::Other {
                let own = &template.groups[at as usize].spots;
                count += own.len();
                spots.extend(own.iter().copied().take(most));
            }
        }
        spots.sort_unstable_by_key(|spot| (spot.unit, spot.at));
        spots.truncate(most);
        Launches { spots, count }
    }

    /// Whether the launch at `spot` may be of this kernel, of whose family it is.
    #[must_use]
    pub fn may_be(&self, report: &Report, kernel: &Kernel, spot: Spot) -> bool {
        let Some((_, arguments)) = self.template(report, kernel) else { return true };
        let written = report.launch(spot).map(|site| Arguments::of(written(report, site)));
        written.is_none_or(|written| written.alike(&arguments) != Alike::Other)
    }

    /// The template that a kernel is of, and its arguments; `None` where it has none, or stands for all instantiations, as
    /// one does that only sources declare.
    fn template(&self, report: &Report, kernel: &Kernel) -> Option<(&Template, Arguments)> {
        let template = self.of_family.get(&kernel.family?)?;
        let arguments = symbol::arguments(report.names.get(kernel.name?))?;
        Some((template, Arguments::of(arguments.as_bytes())))
    }
}

/// Launches that may be of a kernel.
#[derive(Debug, Clone, Default)]
pub struct Launches {
    /// The first of them.
    pub spots: Vec<Spot>,
    /// How many there are.
    pub count: usize,
}

fn all_of<'r>(report: &'r Report, kernel: &Kernel) -> &'r [Spot] {
    let family = kernel.family.and_then(|number| report.families.get(number as usize));
    family.map_or(&[], |family| &family.launches)
}

fn written<'r>(report: &'r Report, site: &LaunchSite) -> &'r [u8] {
    site.arguments.map_or(&[][..], |arguments| report.names.get(arguments))
}

impl Template {
    fn new(report: &Report, launches: &[Spot]) -> Template {
        let mut all = Template::default();
        let mut known: HashMap<Vec<u8>, u32> = HashMap::new();
        for spot in launches {
            let Some(site) = report.launch(*spot) else { continue };
            let arguments = Arguments::of(written(report, site));
            let at = *known.entry(arguments.key(arguments.len())).or_insert_with(|| {
                all.groups.push(Group { arguments, spots: Vec::new(), told: Some(told(site)) });
                super::narrow(all.groups.len() - 1)
            });
            let group = &mut all.groups[at as usize];
            group.spots.push(*spot);
            group.told = group.told.filter(|one| *one == told(site));
        }
        for (at, group) in (0..).zip(&all.groups) {
            if group.arguments.is_plain() {
                all.plain.insert(group.arguments.key(group.arguments.len()), at);
                all.longest = all.longest.max(group.arguments.len());
            } else {
                all.others.push(at);
            }
        }
        all
    }

    /// The groups that may be of an instantiation with these arguments, and how alike they are.
    fn groups_of(&self, arguments: &Arguments) -> Vec<(u32, Alike)> {
        let with = |at: &u32| (*at, self.groups[*at as usize].arguments.alike(arguments));
        let mut found: Vec<(u32, Alike)> = if arguments.is_plain() && self.longest <= arguments.len() {
            // What means the same everywhere is of it only if it is the same, as far as it goes.
            let lists = (0..=arguments.len()).filter_map(|length| self.plain.get(&arguments.key(length)));
            lists.chain(&self.others).map(with).collect()
        } else {
            (0..super::narrow(self.groups.len())).map(|at| with(&at)).collect()
        };
        found.retain(|(_, alike)| *alike != Alike::Other);
        found
    }
}

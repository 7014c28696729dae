//! Comments and what they silence: which hits, and which comments silence none.

use hashbrown::{HashMap, HashSet};

use super::accepting::REGRESSION;
use super::{Active, Target};
use crate::finding::{Basis, Hit, Subject};
use crate::model::{Function, NameId, Place, Report};
use crate::rules::Context;
use crate::suppress::{Remark, Scope, What};

/// What the comments of a run allow.
pub(super) struct Silencer {
    /// The first comment of each place for each rule or group, as an index of the remarks.
    by_scope: HashMap<(Scope, Target), u32>,
    /// For each remark whether it silenced anything.
    used: Vec<bool>,
    /// The kernels with a comment of their own, by name, for what only knows names.
    kernels: HashMap<NameId, Vec<u32>>,
    /// For each kernel the PTX files that declare it, where a comment speaks for a file.
    files: HashMap<u32, Vec<u32>>,
}

impl Silencer {
    pub(super) fn new(context: &Context<'_>) -> Silencer {
        let (report, remarks) = (context.report, &context.numbers.remarks);
        let mut silencer = Silencer {
            by_scope: HashMap::new(),
            used: vec![false; remarks.len()],
            kernels: HashMap::new(),
            files: HashMap::new(),
        };
        for (at, remark) in (0..).zip(remarks) {
            let Some(Ok(target)) = allowed(remark).map(Target::named) else { continue };
            silencer.by_scope.entry((remark.scope, target)).or_insert(at);
            let kernels = match &remark.scope {
                Scope::Kernel(kernel) => std::slice::from_ref(kernel),
                Scope::Family(family) => {
                    report.families.get(*family as usize).map_or(&[][..], |family| &family.kernels)
                }
                Scope::File(_) | Scope::Line(..) | Scope::Nothing => &[],
            };
            for kernel in kernels {
                let Some(name) = report.kernels.get(*kernel as usize).and_then(|kernel| kernel.name) else { continue };
                let known = silencer.kernels.entry(name).or_default();
                if !known.contains(kernel) {
                    known.push(*kernel);
                }
            }
        }
        if remarks.iter().any(|remark| matches!(remark.scope, Scope::File(_))) {
            for module in &report.modules {
                for kernel in module.functions.iter().filter_map(|function| function.kernel) {
                    silencer.files.entry(kernel).or_default().push(module.input);
                }
            }
            for family in &report.families {
                let files = family.declarations.iter().filter_map(|spot| report.declaration(*spot));
                let files: Vec<u32> = files.map(|declared| declared.quote.place.input).collect();
                for kernel in &family.kernels {
                    silencer.files.entry(*kernel).or_default().extend(&files);
                }
            }
        }
        silencer
    }

    /// The comment that silences a hit of a rule: the nearest. All that would do so count as used.
    pub(super) fn silence(&mut self, context: &Context<'_>, active: &Active, hit: &Hit) -> Option<u32> {
        if self.by_scope.is_empty() {
            return None;
        }
        let targets = [Target::Rule(active.rule.id), Target::Group(active.group)];
        let mut first = None;
        for scope in self.scopes(context, hit) {
            for target in targets {
                if let Some(at) = self.by_scope.get(&(scope, target)) {
                    self.used[*at as usize] = true;
                    first = first.or(Some(*at));
                }
            }
        }
        first
    }

    /// What a hit is within, the smallest first.
    fn scopes(&self, context: &Context<'_>, hit: &Hit) -> Vec<Scope> {
        let report = context.report;
        let mut scopes = Vec::new();
        let (mut kernels, mut files) = (Vec::new(), Vec::new());
        let mut places: Vec<Place> = Vec::new();
        let mut quotes = None;
        match hit.subject {
            Subject::Kernel(at) => kernels.push(at),
            Subject::Branch(_) => {
                if let Some(found) = context.branch_of(hit) {
                    kernels.extend(found.function.kernel);
                    files.push(found.module.input);
                }
                quotes = context.quotes_of(hit);
            }
            Subject::Exchange(_) => {
                if let Some((function, loose)) = context.exchange_of(hit) {
                    kernels.extend(function.kernel);
                    files.extend(report.modules.get(loose.module as usize).map(|module| module.input));
                    quotes = loose.quotes;
                }
            }
            Subject::Message(_) => {
                let message = context.message_of(hit);
                let named = message.and_then(|message| self.kernels.get(&message.kernel?));
                let same = |at: &&u32| {
                    let arch = message.and_then(|message| message.arch);
                    arch.is_none_or(|arch| report.kernels.get(**at as usize).is_some_and(|one| one.arch == Some(arch)))
                };
                kernels.extend(named.into_iter().flatten().filter(same));
            }
            Subject::Remark(at) => {
                if let Some(remark) = context.numbers.remarks.get(at as usize) {
                    places.push(remark.quote.place);
                    scopes.push(remark.scope);
                }
            }
            Subject::Launch(_) => {
                if let Some((launched, site)) = context.launch_of(hit) {
                    places.push(site.quote.place);
                    places.extend(site.block_at.as_ref().map(|(_, line)| Place { line: *line, ..site.quote.place }));
                    scopes.extend(launched.family.map(Scope::Family));
                }
            }
            Subject::Family(at) => {
                scopes.push(Scope::Family(at));
                // What a kernel does on one GPU stands at a line of its body.
                let family = report.families.get(at as usize).filter(|_| matches!(hit.because, Some(Subject::Gpu(_))));
                let doubles = family.and_then(|family| family.main(report)?.doubles);
                places.extend(doubles.map(|doubles| doubles.quote.place));
            }
            Subject::Input(at) => files.push(at),
            Subject::Gpu(_) | Subject::Entry(_) | Subject::Budget(_) | Subject::Run => {}
        }
        places.extend(quotes.and_then(|quotes| quotes.source).map(|quote| quote.place));
        places.extend(quotes.map(|quotes| quotes.ptx.place));
        scopes.extend(places.iter().map(|place| Scope::Line(place.input, place.line)));
        files.extend(places.iter().map(|place| place.input));
        for kernel in &kernels {
            files.extend(self.files.get(kernel).into_iter().flatten());
        }
        let families = kernels.iter().filter_map(|at| report.kernels.get(*at as usize)?.family);
        let mut families: Vec<u32> = families.collect();
        families.dedup();
        scopes.extend(kernels.into_iter().map(Scope::Kernel));
        scopes.extend(families.into_iter().map(Scope::Family));
        scopes.extend(files.into_iter().map(Scope::File));
        scopes
    }

    /// The comments that silence nothing though the run saw what they speak for, and those that cannot be understood.
    pub(super) fn unused(&self, context: &Context<'_>, rules: &[Active]) -> Vec<u32> {
        let files = files_with_figures(context.report);
        let placed = context.placed_sources();
        let is_read = |remark: &Remark| remark.is_seen || remark.is_of_run(&placed);
        let is_idle = |(at, remark): &(u32, &Remark)| match &remark.what {
            What::Fault(_) => is_read(remark),
            What::Block(_) => false,
            What::Allow { name, .. } => match Target::named(name) {
                Err(_) => is_read(remark),
                Ok(target) => {
                    !self.used[*at as usize]
                        && remark.is_seen
                        // Without a baseline nothing is held against one.
                        && (context.against.is_some() || target != Target::Rule(REGRESSION))
                        && would_tell(context.report, &files, rules, target, remark.scope)
                }
            },
        };
        (0..).zip(&context.numbers.remarks).filter(is_idle).map(|(at, _)| at).collect()
    }
}

/// The name that a comment allows.
fn allowed(remark: &Remark) -> Option<&str> {
    match &remark.what {
        What::Allow { name, .. } => Some(name),
        What::Block(_) | What::Fault(_) => None,
    }
}

/// Whether all rules of `target` that this run asks for would have told what they find within `scope`.
fn would_tell(report: &Report, files: &HashSet<u32>, rules: &[Active], target: Target, scope: Scope) -> bool {
    let mut asked = rules.iter().filter(|active| target.covers(active.rule, active.group)).peekable();
    let ours = |active: &Active| active.rule.id == super::UNUSED;
    let is_read = |active: &Active| active.basis == Basis::Inferred && is_covered(report, scope);
    let tells = |active: &Active| !ours(active) && (is_read(active) || has_figures(report, files, scope));
    asked.peek().is_some() && asked.all(|active| !active.is_off() && tells(active))
}

/// Whether the code of all within `scope` is there as the compiler made it: what a source shows is not all that PTX would.
fn is_covered(report: &Report, scope: Scope) -> bool {
    let Scope::Family(number) = scope else { return true };
    let Some(family) = report.families.get(number as usize) else { return false };
    let has_code = |at: &u32| report.kernels.get(*at as usize).is_some_and(|kernel| kernel.evidence.head.is_some());
    !family.kernels.is_empty() && family.kernels.iter().all(has_code)
}

/// The PTX files whose kernels all have figures.
fn files_with_figures(report: &Report) -> HashSet<u32> {
    let told = |function: &Function| function.kernel.is_some_and(|at| is_told(report, at));
    let modules = report.modules.iter().filter(|module| module.functions.iter().all(told));
    modules.map(|module| module.input).collect()
}

/// Whether a log has figures of a kernel.
fn is_told(report: &Report, kernel: u32) -> bool {
    report.kernels.get(kernel as usize).is_some_and(|kernel| kernel.evidence.usage.is_some())
}

/// Whether what a log tells is there for everything within `scope`.
fn has_figures(report: &Report, files: &HashSet<u32>, scope: Scope) -> bool {
    match scope {
        Scope::Kernel(at) => is_told(report, at),
        Scope::Family(number) => report
            .families
            .get(number as usize)
            .is_some_and(|family| !family.kernels.is_empty() && family.kernels.iter().all(|at| is_told(report, *at))),
        Scope::File(input) => files.contains(&input),
        // No log has lines of a file.
        Scope::Line(input, _) => input < Place::SOURCE,
        Scope::Nothing => false,
    }
}

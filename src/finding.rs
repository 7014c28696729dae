//! What a rule found, as plain data: first a cheap hit, then, only for what is shown, a finding in words.

use crate::model::{Arch, NameId, Quote};

/// How loud a rule is. Shown as note, warning and error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Not shown.
    Allow,
    /// Shown in one line; fails nothing by default.
    Note,
    /// Shown in full.
    Warn,
    /// Shown in full, first.
    Deny,
}

impl Level {
    /// The level called `name` in options and configuration.
    #[must_use]
    pub fn named(name: &str) -> Option<Level> {
        [Level::Allow, Level::Note, Level::Warn, Level::Deny].into_iter().find(|level| level.name() == name)
    }

    /// Its name in options and configuration.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Level::Allow => "allow",
            Level::Note => "note",
            Level::Warn => "warn",
            Level::Deny => "deny",
        }
    }
}

/// How a finding is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The compiler printed it.
    Measured,
    /// It follows from the table of the target.
    Computed,
    /// It is read off the source.
    Inferred,
}

impl Basis {
    /// The basis called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Basis> {
        [Basis::Measured, Basis::Computed, Basis::Inferred].into_iter().find(|basis| basis.name() == name)
    }

    /// Its name in the JSON report and on rule pages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Basis::Measured => "measured",
            Basis::Computed => "computed",
            Basis::Inferred => "inferred",
        }
    }
}

/// What a rule's check leaves: enough to count, sort and group, and to find the words later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// What it is about.
    pub subject: Subject,
    /// Which of the subject's occupancies, for rules that judge one: an index of [`crate::analyse::Numbers::judged`].
    pub judged: Option<u32>,
    /// The loudest that this hit may be, whatever the rule's level.
    pub cap: Level,
    /// The cap does not hold where a person set the level of the rule.
    pub cap_yields: bool,
    /// How bad it is among the hits of its rule; more is worse.
    pub weight: u32,
    /// Further lines that it stands for.
    pub more: u32,
    /// Which hits of a rule are one cause.
    pub cause: Cause,
    /// What else of the report explains it, for the words.
    pub because: Option<Subject>,
}

/// What a hit is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// An index of [`crate::model::Report::kernels`].
    Kernel(u32),
    /// An index of [`crate::model::Report::messages`].
    Message(u32),
    /// An index of [`crate::model::Report::inputs`].
    Input(u32),
    /// An index of [`crate::analyse::Numbers::gpus`].
    Gpu(u32),
    /// An index of [`crate::analyse::Numbers::entries`].
    Entry(u32),
    /// An index of [`crate::analyse::Numbers::budgets`].
    Budget(u32),
    /// An index of [`crate::analyse::Branches::all`].
    Branch(u32),
    /// An index of [`crate::analyse::Branches::exchanges`].
    Exchange(u32),
    /// An index of [`crate::analyse::Numbers::remarks`].
    Remark(u32),
    /// An index of [`crate::analyse::Numbers::launches`].
    Launch(u32),
    /// An index of [`crate::model::Report::families`]: a kernel as sources declare it.
    Family(u32),
    /// All that was read.
    Run,
}

/// Which hits of one rule are one cause, and so one report to a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Those of one kernel: all instantiations of a template, on all architectures.
    Kernel,
    /// Those of one kernel that have the same reason; the number tells the reasons of a rule apart.
    KernelFor(u32),
    /// Those of the rule that have the same reason.
    Reason(u32),
    /// Each is its own.
    Single,
    /// All of the rule are one.
    Rule,
}

impl Cause {
    /// The cause of hits of the rule that have the same reason, whose number is `reason`.
    #[must_use]
    pub fn of_rule(reason: usize) -> Cause {
        Cause::Reason(narrow(reason))
    }
}

impl Hit {
    /// A hit on the kernel with index `at`, grouped with its other instantiations.
    #[must_use]
    pub fn kernel(at: usize, weight: u32) -> Hit {
        Hit::on(Subject::Kernel(narrow(at)), weight, Cause::Kernel)
    }

    /// A hit on the message with index `at`, grouped by the kernel that it names.
    #[must_use]
    pub fn message(at: usize, weight: u32) -> Hit {
        Hit::on(Subject::Message(narrow(at)), weight, Cause::Kernel)
    }

    /// A hit on the input with index `at`.
    #[must_use]
    pub fn input(at: usize, weight: u32) -> Hit {
        Hit::on(Subject::Input(narrow(at)), weight, Cause::Single)
    }

    /// A hit on all that was read.
    #[must_use]
    pub fn run(weight: u32) -> Hit {
        Hit::on(Subject::Run, weight, Cause::Single)
    }

    fn on(subject: Subject, weight: u32, cause: Cause) -> Hit {
        Hit { subject, judged: None, cap: Level::Deny, cap_yields: false, more: 0, weight, cause, because: None }
    }

    /// A hit on the GPU with index `at`, on its own.
    #[must_use]
    pub fn gpu(at: usize) -> Hit {
        Hit { subject: Subject::Gpu(narrow(at)), cause: Cause::Single, ..Hit::kernel(at, 0) }
    }

    /// A hit on the branch with index `at`.
    #[must_use]
    pub fn branch(at: usize, weight: u32) -> Hit {
        Hit::on(Subject::Branch(narrow(at)), weight, Cause::Single)
    }

    /// A hit on the exchange between lanes with index `at`, grouped with those of the same kernel.
    #[must_use]
    pub fn exchange(at: usize, weight: u32) -> Hit {
        Hit::on(Subject::Exchange(narrow(at)), weight, Cause::Kernel)
    }

    /// A hit on the launch with index `at`, on its own.
    #[must_use]
    pub fn launch(at: usize, weight: u32) -> Hit {
        Hit::on(Subject::Launch(narrow(at)), weight, Cause::Single)
    }

    /// A hit on the family with index `at`: what sources declare as one kernel.
    #[must_use]
    pub fn family(at: usize, weight: u32) -> Hit {
        Hit::on(Subject::Family(narrow(at)), weight, Cause::Single)
    }

    /// A hit on what a comment says, by its index, on its own.
    #[must_use]
    pub fn remark(at: usize) -> Hit {
        Hit::on(Subject::Remark(narrow(at)), 0, Cause::Single)
    }

    /// A hit on the entry of the configuration with index `at`, on its own.
    #[must_use]
    pub fn entry(at: usize) -> Hit {
        Hit::on(Subject::Entry(narrow(at)), 0, Cause::Single)
    }

    /// A hit on the budget with index `at`, on its own.
    #[must_use]
    pub fn budget(at: usize) -> Hit {
        Hit::on(Subject::Budget(narrow(at)), 0, Cause::Single)
    }

    /// The same, at most a note, a warning, …
    #[must_use]
    pub fn at_most(self, cap: Level) -> Hit {
        Hit { cap, ..self }
    }

    /// The same, at most a note, a warning, … unless a person sets the level of the rule.
    #[must_use]
    pub fn by_default_at_most(self, cap: Level) -> Hit {
        Hit { cap, cap_yields: true, ..self }
    }

    /// The same, with another idea of what is one cause.
    #[must_use]
    pub fn caused_by(self, cause: Cause) -> Hit {
        Hit { cause, ..self }
    }

    /// The same, grouped with hits of the same kernel and the same reason of the rule.
    #[must_use]
    pub fn for_reason(self, reason: usize) -> Hit {
        Hit { cause: Cause::KernelFor(narrow(reason)), ..self }
    }

    /// The same, explained by the kernel with index `at`, if any.
    #[must_use]
    pub fn because_of_kernel(self, at: Option<usize>) -> Hit {
        Hit { because: at.map(|at| Subject::Kernel(narrow(at))), ..self }
    }

    /// The same, explained by the message with index `at`, if any.
    #[must_use]
    pub fn because_of_message(self, at: Option<usize>) -> Hit {
        Hit { because: at.map(|at| Subject::Message(narrow(at))), ..self }
    }

    /// The same, explained by the budget with index `at`.
    #[must_use]
    pub fn because_of_budget(self, at: usize) -> Hit {
        Hit { because: Some(Subject::Budget(narrow(at))), ..self }
    }

    /// The same, about one of the subject's occupancies.
    #[must_use]
    pub fn judged(self, at: u32) -> Hit {
        Hit { judged: Some(at), ..self }
    }
}

fn narrow(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// A finding in words.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The fact, with this kernel's numbers; stands alone, without a full stop.
    pub message: String,
    /// The message in fewer words, for one line of a terminal, where there are fewer.
    pub brief: Option<String>,
    /// What to do, as one paragraph.
    pub help: Option<String>,
    /// Where it shows. A finding on the whole input has none.
    pub label: Option<Label>,
    /// The kernel's name.
    pub kernel: Option<NameId>,
    /// The architecture that it holds for.
    pub arch: Option<Arch>,
    /// The GPU that it holds for.
    pub gpu: Option<String>,
    /// The numbers behind the message.
    pub facts: Vec<(&'static str, Fact)>,
    /// How often the compiler said it.
    pub count: u64,
    /// The line of the PTX that a finding on a source line comes from.
    pub ptx: Option<Label>,
    /// Other places that belong to it.
    pub beside: Vec<Label>,
    /// How sure it is, for findings of the lane analysis.
    pub confidence: Option<&'static str>,
    /// What tells it from others of its rule on the same kernel, where no fact called `reason` does.
    pub mark: Option<String>,
}

impl Finding {
    /// A finding that says `message`.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Finding {
        Finding {
            message: message.into(),
            brief: None,
            help: None,
            label: None,
            kernel: None,
            arch: None,
            gpu: None,
            facts: Vec::new(),
            count: 1,
            ptx: None,
            beside: Vec::new(),
            confidence: None,
            mark: None,
        }
    }

    /// With fewer words for the same.
    #[must_use]
    pub fn brief(self, brief: impl Into<String>) -> Finding {
        Finding { brief: Some(brief.into()), ..self }
    }

    /// With advice.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Finding {
        Finding { help: Some(help.into()), ..self }
    }

    /// With a place, where one is known.
    #[must_use]
    pub fn label(self, label: Option<Label>) -> Finding {
        Finding { label, ..self }
    }

    /// With what tells it from others of its rule on the same kernel.
    #[must_use]
    pub fn mark(self, mark: impl Into<String>) -> Finding {
        Finding { mark: Some(mark.into()), ..self }
    }

    /// With a number behind it.
    #[must_use]
    pub fn fact(mut self, name: &'static str, value: impl Into<Fact>) -> Finding {
        self.facts.push((name, value.into()));
        self
    }
}

/// A span of a kept line, and what to say of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The line.
    pub quote: Quote,
    /// What stands on the line before the text that was kept of it, where that was kept too.
    pub lead: Option<NameId>,
    /// A name that is kept apart, and the byte of the kept text before which it belongs.
    pub name: Option<(u16, NameId)>,
    /// First byte of the span within the line's text, the name in its place.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
    /// What it shows.
    pub text: String,
}

/// A number or a word behind a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// A count.
    Count(u64),
    /// A fraction.
    Fraction(f64),
    /// A word.
    Word(String),
    /// Words.
    Words(Vec<&'static str>),
    /// Unknown.
    Unknown,
}

impl From<u32> for Fact {
    fn from(count: u32) -> Fact {
        Fact::Count(count.into())
    }
}

impl From<u64> for Fact {
    fn from(count: u64) -> Fact {
        Fact::Count(count)
    }
}

impl From<f64> for Fact {
    fn from(fraction: f64) -> Fact {
        Fact::Fraction(fraction)
    }
}

impl From<crate::model::Bytes> for Fact {
    fn from(bytes: crate::model::Bytes) -> Fact {
        Fact::Count(bytes.get().into())
    }
}

impl From<String> for Fact {
    fn from(word: String) -> Fact {
        Fact::Word(word)
    }
}

impl From<&str> for Fact {
    fn from(word: &str) -> Fact {
        Fact::Word(word.to_owned())
    }
}

impl<T: Into<Fact>> From<Option<T>> for Fact {
    fn from(value: Option<T>) -> Fact {
        value.map_or(Fact::Unknown, Into::into)
    }
}

//! Which label a branch means. A label holds within the braces that it stands in, before it too, and hides one of the same
//! name outside.

use std::hash::BuildHasher;

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::lexer::Fault;
use crate::model::{Flow, Way};

/// Stands for no label and no table.
const NONE: u32 = u32::MAX;

/// A name: where it begins and ends in the text.
type Name = (u32, u32);

#[derive(Debug)]
struct Label {
    name: Name,
    /// The braces that it stands in, numbered as they open.
    scope: u32,
    /// The instruction that follows.
    at: u32,
    /// The table that it names.
    table: u32,
    /// The first label of the same name.
    first: u32,
    /// For a first label: which of that name holds where the walk is.
    holds: u32,
    /// Which of that name holds outside.
    hidden: u32,
}

/// What is met on the way through a function.
#[derive(Debug)]
enum Mark {
    /// A brace that opens the scope with this number.
    Open(u32),
    /// The brace that closes it.
    Close(u32),
    /// A jump, by its place in the flow, and the name of its label or table.
    Jump(u32, Name),
    /// A table begins.
    Table,
    /// A target of that table.
    Target(Name),
}

/// The labels of one function and what refers to them; the memory is used again for the next.
#[derive(Debug, Default)]
pub(super) struct Labels {
    labels: Vec<Label>,
    marks: Vec<Mark>,
    tables: u32,
    /// The scopes that are open within the function's, which is 0.
    open: Vec<u32>,
    scopes: u32,
    /// First labels by name.
    names: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// Labels in the order of their scopes, and where those of each scope begin.
    by_scope: Vec<u32>,
    starts: Vec<u32>,
}

impl Labels {
    pub(super) fn clear(&mut self) {
        self.labels.clear();
        self.marks.clear();
        self.open.clear();
        (self.tables, self.scopes) = (0, 0);
    }

    pub(super) fn open(&mut self) {
        self.scopes += 1;
        self.open.push(self.scopes);
        self.marks.push(Mark::Open(self.scopes));
    }

    pub(super) fn close(&mut self) {
        if let Some(scope) = self.open.pop() {
            self.marks.push(Mark::Close(scope));
        }
    }

    /// A label before the instruction `at`.
    pub(super) fn label(&mut self, name: Name, at: u32) {
        let scope = self.open.last().copied().unwrap_or(0);
        self.labels.push(Label { name, scope, at, table: NONE, first: NONE, holds: NONE, hidden: NONE });
    }

    /// The last jump of the flow goes to what is called so.
    pub(super) fn jump(&mut self, flow: &Flow, name: Name) {
        self.marks.push(Mark::Jump(narrow(flow.jumps.len().saturating_sub(1)), name));
    }

    /// A table, which the last label names.
    pub(super) fn table(&mut self) {
        if let Some(label) = self.labels.last_mut() {
            label.table = self.tables;
        }
        self.tables += 1;
        self.marks.push(Mark::Table);
    }

    pub(super) fn target(&mut self, name: Name) {
        self.marks.push(Mark::Target(name));
    }

    /// Finds what every name stands for, and completes `flow` with it.
    pub(super) fn resolve(&mut self, text: &[u8], flow: &mut Flow) -> Result<(), Fault> {
        self.find_names(text);
        self.sort_by_scope();
        self.enter(0, text)?;
        let marks = std::mem::take(&mut self.marks);
        for mark in &marks {
            match *mark {
                Mark::Open(scope) => self.enter(scope, text)?,
                Mark::Close(scope) => self.leave(scope),
                Mark::Jump(jump, name) => {
                    let label = self.meant(name, text)?;
                    let jump = &mut flow.jumps[jump as usize];
                    jump.way = match jump.way {
                        Way::Table(_) if label.table == NONE => {
                            return Err(fault(name, text, "names no table of branch targets"));
                        }
                        Way::Table(_) => Way::Table(label.table),
                        Way::To(_) | Way::Out => Way::To(label.at),
                    };
                }
                Mark::Table => {
                    flow.add_table();
                }
                Mark::Target(name) => flow.add_target(self.meant(name, text)?.at),
            }
        }
        self.marks = marks;
        Ok(())
    }

    fn find_names(&mut self, text: &[u8]) {
        let Labels { labels, names, hasher, .. } = self;
        names.clear();
        for at in 0..labels.len() {
            let bytes = bytes(labels[at].name, text);
            let same = |other: &u32| self::bytes(labels[*other as usize].name, text) == bytes;
            let hash = |other: &u32| hasher.hash_one(self::bytes(labels[*other as usize].name, text));
            let first = match names.entry(hasher.hash_one(bytes), same, hash) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(free) => *free.insert(narrow(at)).get(),
            };
            labels[at].first = first;
        }
    }

    fn sort_by_scope(&mut self) {
        self.starts.clear();
        self.starts.resize(self.scopes as usize + 2, 0);
        self.labels.iter().for_each(|label| self.starts[label.scope as usize + 1] += 1);
        for at in 1..self.starts.len() {
            self.starts[at] += self.starts[at - 1];
        }
        self.by_scope.clear();
        self.by_scope.extend(0..narrow(self.labels.len()));
        if self.scopes > 0 {
            self.by_scope.sort_by_key(|at| self.labels[*at as usize].scope);
        }
    }

    fn in_scope(&self, scope: u32) -> std::ops::Range<usize> {
        self.starts[scope as usize] as usize..self.starts[scope as usize + 1] as usize
    }

    /// The labels of a scope hold from its beginning.
    fn enter(&mut self, scope: u32, text: &[u8]) -> Result<(), Fault> {
        for place in self.in_scope(scope) {
            let at = self.by_scope[place];
            let first = self.labels[at as usize].first;
            let hidden = std::mem::replace(&mut self.labels[first as usize].holds, at);
            if hidden != NONE && self.labels[hidden as usize].scope == scope {
                return Err(fault(self.labels[at as usize].name, text, "is the name of two labels"));
            }
            self.labels[at as usize].hidden = hidden;
        }
        Ok(())
    }

    fn leave(&mut self, scope: u32) {
        for place in self.in_scope(scope) {
            let Label { first, hidden, .. } = self.labels[self.by_scope[place] as usize];
            self.labels[first as usize].holds = hidden;
        }
    }

    /// The label of this name that holds here.
    fn meant(&self, name: Name, text: &[u8]) -> Result<&Label, Fault> {
        let bytes = bytes(name, text);
        let same = |other: &u32| self::bytes(self.labels[*other as usize].name, text) == bytes;
        let first = self.names.find(self.hasher.hash_one(bytes), same);
        let holds = first.map_or(NONE, |first| self.labels[*first as usize].holds);
        self.labels.get(holds as usize).ok_or_else(|| fault(name, text, "is a label that is not there"))
    }
}

fn bytes(name: Name, text: &[u8]) -> &[u8] {
    &text[name.0 as usize..name.1 as usize]
}

fn fault(name: Name, text: &[u8], what: &str) -> Fault {
    let bytes = bytes(name, text);
    Fault::new(name.0 as usize, bytes.len(), format!("`{}` {what}", String::from_utf8_lossy(bytes)))
}

fn narrow(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::Body;
    use super::*;

    /// Where the jumps of a function lead, or what is wrong with it.
    fn ways(text: &str) -> Result<Vec<Vec<u32>>, String> {
        let mut body = Body::default();
        let text = format!("{{ {text} }}");
        body.read(text.as_bytes(), 0).map_err(|fault| format!("{}: {}", fault.at - 2, fault.message))?;
        let ways = body.flow.jumps.iter().map(|jump| match jump.way {
            Way::To(at) => vec![at],
            Way::Table(table) => body.flow.table(table).to_vec(),
            Way::Out => vec![u32::MAX],
        });
        Ok(ways.collect())
    }

    #[test]
    fn a_branch_goes_to_the_instruction_behind_its_label() {
        assert_eq!(ways("A: B: neg.s32 %r1, %r1; bra.uni B; @%p1 bra C; C:"), Ok(vec![vec![0], vec![3]]));
        assert_eq!(
            ways("T: .branchtargets A, C, A; C: @%p1 brx.idx.uni %r1.x , /* , */ T; A: ret;"),
            Ok(vec![vec![1, 0, 1], vec![u32::MAX]])
        );
    }

    #[test]
    fn a_label_holds_within_its_braces_and_hides_the_one_outside() {
        let wait = "{ W: try.b32 %r1; @P1 bra D; bra W; D: }";
        assert_eq!(ways(&wait.repeat(2)), Ok(vec![vec![3], vec![0], vec![6], vec![3]]));
        assert_eq!(ways("A: { bra A; neg.s32 %r1, %r1; A: } bra A;"), Ok(vec![vec![2], vec![0]]));
        assert_eq!(ways("{ { bra A; } neg.s32 %r1, %r1; A: } A: bra A;"), Ok(vec![vec![2], vec![2]]));
        assert_eq!(ways("{ bra A; } {} A:"), Ok(vec![vec![1]]));
        assert_eq!(ways("{ T: .branchtargets A; brx.idx %r1, T; } A:"), Ok(vec![vec![1]]));
    }

    #[test]
    fn a_branch_to_a_label_that_is_not_there_is_a_fault_at_its_name() {
        for (text, expected) in [
            ("bra A;", "4: `A` is a label that is not there"),
            ("@%p1 bra.uni A; ret;", "13: `A` is a label that is not there"),
            ("ret; bra A; a:", "9: `A` is a label that is not there"),
            ("bra A; { A: }", "4: `A` is a label that is not there"),
            ("{ A: } bra A;", "11: `A` is a label that is not there"),
            ("T: .branchtargets A, B; A: brx.idx %r1, T;", "21: `B` is a label that is not there"),
            ("brx.idx %r1, T; A: ret;", "13: `T` is a label that is not there"),
            ("A: brx.idx %r1, A;", "16: `A` names no table of branch targets"),
            ("A: ret; A: ret;", "8: `A` is the name of two labels"),
            ("{ A: { A: } ret; A: }", "17: `A` is the name of two labels"),
            ("bra;", "0: this branch names no label"),
            ("bra.uni [A]; A:", "0: this branch names no label"),
            ("brx.idx %r1; A:", "0: this branch names no table of targets"),
            ("brx.idx %r1, {A}; A:", "0: this branch names no table of targets"),
        ] {
            assert_eq!(ways(text), Err(expected.to_owned()), "{text}");
        }
    }
}

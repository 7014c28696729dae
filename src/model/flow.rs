//! Where control goes in one function of a PTX module: its jumps, with labels resolved.

/// How an instruction sends control elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// A branch: to the instruction with this number, which may be one past the last.
    To(u32),
    /// A branch through the table with this number.
    Table(u32),
    /// A return, or an end of the thread.
    Out,
}

/// An instruction after which control may go elsewhere than to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Jump {
    /// The instruction, by its number in the function.
    pub at: u32,
    /// Whether a predicate guards it.
    pub guarded: bool,
    /// Where it leads.
    pub way: Way,
}

/// The jumps of a function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Flow {
    /// How many instructions the function has.
    pub instructions: u32,
    /// Its jumps, in order.
    pub jumps: Vec<Jump>,
    /// The targets of all tables, one table behind the other.
    targets: Vec<u32>,
    /// Where each table begins.
    tables: Vec<u32>,
}

impl Flow {
    /// Empties it, and keeps its memory.
    pub fn clear(&mut self) {
        self.instructions = 0;
        self.jumps.clear();
        self.targets.clear();
        self.tables.clear();
    }

    /// Begins another table, and tells its number.
    pub fn add_table(&mut self) -> u32 {
        self.tables.push(narrow(self.targets.len()));
        narrow(self.tables.len() - 1)
    }

    /// Adds a target to the last table.
    pub fn add_target(&mut self, instruction: u32) {
        self.targets.push(instruction);
    }

    /// The instructions that a table leads to, in order.
    #[must_use]
    pub fn table(&self, number: u32) -> &[u32] {
        let at = number as usize;
        let start = self.tables.get(at).map_or(self.targets.len(), |start| *start as usize);
        let end = self.tables.get(at + 1).map_or(self.targets.len(), |end| *end as usize);
        &self.targets[start..end]
    }

    /// The jump of an instruction, if it is one.
    #[must_use]
    pub fn jump_at(&self, instruction: u32) -> Option<&Jump> {
        self.jumps.binary_search_by_key(&instruction, |jump| jump.at).ok().map(|at| &self.jumps[at])
    }
}

fn narrow(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_lie_one_behind_the_other() {
        let mut flow = Flow::default();
        let [first, empty, last] = [&[1, 2][..], &[], &[3]].map(|targets| {
            let table = flow.add_table();
            targets.iter().for_each(|target| flow.add_target(*target));
            table
        });
        assert_eq!([first, empty, last].map(|table| flow.table(table)), [&[1, 2][..], &[], &[3]]);
        assert_eq!(flow.table(3), &[] as &[u32]);
        flow.jumps.push(Jump { at: 7, guarded: false, way: Way::Table(last) });
        assert_eq!(flow.jump_at(7).map(|jump| jump.way), Some(Way::Table(2)));
        assert_eq!(flow.jump_at(6), None);
        flow.clear();
        assert_eq!(flow, Flow::default());
    }
}

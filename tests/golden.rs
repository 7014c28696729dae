//! Occupancy against golden tables computed with NVIDIA's own calculator header, every row and every column.

#![allow(clippy::unwrap_used, reason = "a malformed table should stop the test")]

use std::path::Path;

use warplint::gpu::{
    CachePreference, Launch, PartitionedCaching, SharedLimit, Target, available_dynamic_shared, occupancy,
    suggest_block_size,
};
use warplint::model::{Arch, Bytes};

/// Mismatches shown in full.
const SHOWN: usize = 8;

/// A golden table: names of the columns and the rows.
struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn read(path: &Path) -> Table {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<String>>());
        let columns = lines.next().unwrap_or_default();
        Table { columns, rows: lines.filter(|row| row.len() > 1).collect() }
    }

    fn of_fixtures(name: &str) -> Table {
        Table::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/occupancy").join(name))
    }

    /// A table with rows missing would prove less than it seems to.
    fn of_length(self, rows: usize) -> Table {
        assert_eq!(self.rows.len(), rows);
        self
    }

    /// Holds `answer` against the columns from `status` on, for every row.
    fn check(&self, answer: impl Fn(&Row) -> Option<Vec<u64>>) {
        let first_output = self.column("status");
        let mut wrong = Vec::new();
        for fields in &self.rows {
            let row = Row { table: self, fields };
            let expected = (row.number("status") == 0)
                .then(|| fields[first_output + 1..].iter().map(|field| field.parse().unwrap()).collect::<Vec<u64>>());
            let answer = answer(&row);
            if answer != expected {
                wrong.push(format!("{}\n  expected {expected:?}\n  computed {answer:?}", fields.join(",")));
            }
        }
        let shown = wrong.iter().take(SHOWN).cloned().collect::<Vec<String>>().join("\n");
        assert!(
            wrong.is_empty(),
            "{} of {} rows differ\n{}\n{shown}",
            wrong.len(),
            self.rows.len(),
            self.columns.join(",")
        );
    }

    fn column(&self, name: &str) -> usize {
        self.columns.iter().position(|column| column == name).unwrap_or_else(|| panic!("no column {name}"))
    }
}

struct Row<'a> {
    table: &'a Table,
    fields: &'a [String],
}

impl Row<'_> {
    fn number(&self, column: &str) -> i64 {
        self.fields[self.table.column(column)].parse().unwrap_or_else(|_| panic!("{column} is no number"))
    }

    fn count(&self, column: &str) -> Option<u32> {
        u32::try_from(self.number(column)).ok()
    }

    fn target(&self) -> &'static Target {
        let (major, minor) = self.fields[self.table.column("cc")].split_once('.').unwrap();
        Target::of(Arch::new(major.parse().unwrap(), minor.parse().unwrap())).unwrap()
    }

    /// `None` for what the types already refuse: negative counts, and a carveout below -1.
    fn launch(&self) -> Option<Launch> {
        let carveout = match self.number("carveout") {
            -1 => None,
            // Before 7.0 there is no carveout, and NVIDIA looks at no value of it.
            other if other < -1 && !self.target().arch.at_least(7, 0) => None,
            other => Some(u8::try_from(other).ok()?),
        };
        let max_dynamic = Bytes(self.count("max_dynamic_smem")?);
        Some(Launch {
            registers: self.count("regs")?,
            threads: self.count("threads")?,
            static_shared: Bytes(self.count("static_smem")?),
            dynamic_shared: Bytes(self.count("dynamic_smem")?),
            carveout,
            cache: [CachePreference::None, CachePreference::Shared, CachePreference::L1, CachePreference::Equal]
                [self.number("cache_config") as usize],
            shared_limit: match self.number("shmem_limit") {
                0 => SharedLimit::Standard,
                _ => SharedLimit::OptIn { max_dynamic },
            },
            partitioned: [PartitionedCaching::Off, PartitionedCaching::On, PartitionedCaching::Strict]
                [self.number("gc_config") as usize],
            barriers: self.count("barriers")?,
            virtual_resources: self.count("virtual_res")?,
            max_threads: None,
        })
    }
}

fn active(row: &Row) -> Option<Vec<u64>> {
    /// How NVIDIA writes "no limit".
    const NONE: u32 = 2_147_483_647;
    let answer = occupancy(row.target(), &row.launch()?).ok()?;
    let limits = answer.limits;
    let limit = |limit: Option<u32>| u64::from(limit.unwrap_or(NONE));
    Some(vec![
        u64::from(answer.blocks_per_sm),
        u64::from(answer.active_warps),
        u64::from(answer.limiters.bits()),
        limit(limits.warps),
        limit(limits.registers),
        limit(limits.shared_memory),
        limit(limits.blocks),
        limit(limits.barriers),
        limit(limits.virtual_resources),
        u64::from(answer.allocated_registers_per_block),
        u64::from(answer.allocated_shared_per_block.0),
        answer.partitioned as u64,
    ])
}

#[test]
fn golden_active_blocks_agree_in_every_column() {
    Table::of_fixtures("golden-dev.csv").of_length(9709).check(active);
}

#[test]
fn golden_available_shared_memory_agrees() {
    Table::of_fixtures("golden-avail.csv").of_length(1271).check(|row| {
        let blocks = row.count("num_blocks")?;
        available_dynamic_shared(row.target(), &row.launch()?, blocks).ok().map(|bytes| vec![u64::from(bytes.0)])
    });
}

#[test]
fn golden_block_size_suggestions_agree() {
    Table::of_fixtures("golden-suggest.csv").of_length(575).check(|row| {
        let best = suggest_block_size(row.target(), &row.launch()?, None).ok()?;
        Some(vec![u64::from(best.threads), u64::from(best.blocks_per_sm)])
    });
}

#[test]
fn golden_rows_of_a_file_named_by_the_environment_agree_too() {
    if let Some(path) = std::env::var_os("WARPLINT_GOLDEN") {
        Table::read(Path::new(&path)).check(active);
    }
}

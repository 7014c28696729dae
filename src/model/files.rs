//! Files by the names that a compiler has for them, which begin with other folders than those that a user gives.

use hashbrown::HashMap;

/// Files, to be found by how their paths end.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// Every end of every path that begins with a whole name, and the file whose it is; `None` where several have it.
    by_end: HashMap<Vec<u8>, Option<u32>>,
}

impl Files {
    /// Adds the file with this number.
    pub fn add(&mut self, path: &[u8], number: u32) {
        let names = names(path);
        for end in ends(&names) {
            let known = self.by_end.entry(end.to_vec()).or_insert(Some(number));
            *known = known.filter(|known| *known == number);
        }
    }

    /// The number of the file that a compiler calls `name`: the one whose path ends most alike; `None` where several do, or
    /// none does.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<u32> {
        let names = names(name);
        ends(&names).find_map(|end| self.by_end.get(end)).copied().flatten()
    }
}

/// The names of a path, with a `/` between them.
fn names(path: &[u8]) -> Vec<u8> {
    let parts = path.split(|byte| matches!(byte, b'/' | b'\\'));
    let names: Vec<&[u8]> = parts.filter(|part| !matches!(*part, b"" | b"." | b"..")).collect();
    names.join(&b'/')
}

/// Its ends, the longest first.
fn ends(names: &[u8]) -> impl Iterator<Item = &[u8]> {
    let starts = std::iter::once(0).chain(memchr::memchr_iter(b'/', names).map(|at| at + 1));
    starts.map(|start| &names[start..]).filter(|end| !end.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_whose_path_ends_most_alike_is_found_and_none_of_two_that_end_alike() {
        let mut files = Files::default();
        for (number, path) in (0..).zip(["src/f32/k.cu", "./src/f64/k.cu", "/home/me/own.cu", "lib\\k.cuh"]) {
            files.add(path.as_bytes(), number);
        }
        for (name, expected) in [
            ("/build/src/f64/k.cu", Some(1)),
            ("../f32/k.cu", Some(0)),
            ("k.cu", None),
            ("/other/k.cu", None),
            ("own.cu", Some(2)),
            ("C:\\lib\\k.cuh", Some(3)),
            ("k", None),
            ("", None),
        ] {
            assert_eq!(files.find(name.as_bytes()), expected, "{name}");
        }
    }
}

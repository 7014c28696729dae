//! The name that was meant where one that nobody knows was written.

/// How alike a name must be to be offered, 0 to 1: by its letters, those of its beginning before others.
const ALIKE: f64 = 0.75;

/// The share of letters that must be right in their places.
const RIGHT: f64 = 0.5;

/// Shortest part of a name that stands for it.
const PART: usize = 4;

/// The known name that is nearest to `name`, where one is near.
#[must_use]
pub fn nearest<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let alike = |id: &str| {
        let score = strsim::jaro_winkler(name, id);
        let is_part = name.len() >= PART && id.contains(name);
        let is_near = is_part || (score > ALIKE && strsim::normalized_damerau_levenshtein(name, id) >= RIGHT);
        is_near.then_some(score)
    };
    let near = known.into_iter().filter_map(|id| Some((alike(id)?, id)));
    near.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, id)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_offered_and_what_only_begins_alike_is_not() {
        let known = ["register-spill", "no-resource-report", "spills", "wgmma-serialized", "index-divergent-branch"];
        for (name, meant) in [
            ("reg-spill", "register-spill"),
            ("spill", "spills"),
            ("wgmma", "wgmma-serialized"),
            ("divergent-branch", "index-divergent-branch"),
            ("no_resource_report", "no-resource-report"),
        ] {
            assert_eq!(nearest(name, known), Some(meant), "{name}");
        }
        for name in ["nosuch", "no", "xyz", ""] {
            assert_eq!(nearest(name, known), None, "{name}");
        }
    }
}

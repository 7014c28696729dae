//! What may be said of a branch that was read off a source, without what a compiler makes of it: less, and less surely.

use super::verdict::{Advice, Confidence, Evidence, Judgement, Verdict};

/// The smaller of two sides from which on a split is worth a word: merging, predication and folding cannot be seen.
pub const SIDE: f64 = 24.0;

/// The judgement on a branch of a source, of one that would hold for compiled code.
#[must_use]
pub fn of_source(evidence: &Evidence, judged: Judgement) -> Judgement {
    let judged = Judgement { confidence: judged.confidence.min(Confidence::Medium), ..judged };
    let silent = |reason| Judgement { advice: Advice::Silent, reason, ..judged };
    if evidence.data.by_data || evidence.index.by_data {
        return silent("what a source does not tell has a part in it");
    }
    match judged.verdict {
        Verdict::BarrierInDivergent => Judgement { advice: Advice::Warn, ..judged },
        Verdict::DivergentIndex if evidence.is_loop || evidence.several => judged,
        Verdict::DivergentIndex => {
            let less = evidence.sides.map_or(0.0, |(taken, other)| taken.weight.min(other.weight));
            if less >= SIDE { judged } else { silent("lanes part, and a source does not tell that they lose enough") }
        }
        _ => silent(judged.reason),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cost::Side;
    use super::super::verdict::{Missed, Split, judge};
    use super::*;

    fn evidence(weight: f64) -> Evidence {
        let index = Split { mean: 1.0, most: 1.0, robust: 1.0, block: true, taking: 0.5, ..Split::default() };
        let side = Side { weight, ..Side::default() };
        Evidence {
            index,
            data: index,
            spread: None,
            is_loop: false,
            is_guard: false,
            sides: Some((side, side)),
            several: false,
            barrier: None,
            shape_known: true,
            is_source: true,
        }
    }

    fn told(evidence: &Evidence) -> (Verdict, Confidence, Advice) {
        let judgement = judge(evidence);
        (judgement.verdict, judgement.confidence, judgement.advice)
    }

    #[test]
    fn a_source_is_less_sure_and_asks_for_more_on_both_sides() {
        assert_eq!(told(&evidence(24.0)), (Verdict::DivergentIndex, Confidence::Medium, Advice::Warn));
        assert_eq!(told(&evidence(23.0)).2, Advice::Silent);
        let one = Side { weight: 100.0, ..Side::default() };
        let one_sided = Evidence { sides: Some((one, Side::default())), ..evidence(24.0) };
        assert_eq!(told(&one_sided).2, Advice::Silent);
    }

    #[test]
    fn what_is_not_known_silences_everything() {
        let data = Split { by_data: true, ..evidence(24.0).index };
        assert_eq!(told(&Evidence { data, ..evidence(24.0) }).2, Advice::Silent);
        let barrier = Evidence { barrier: Some(Missed::Exits), ..evidence(24.0) };
        assert_eq!(told(&barrier), (Verdict::BarrierInDivergent, Confidence::Medium, Advice::Warn));
        assert_eq!(told(&Evidence { data, ..barrier }).2, Advice::Silent);
    }
}

//! Shares in words, the same in every report.

/// A fraction as whole percent, or as the half percent that it is: `50 %`, `62.5 %`, `67 %`.
#[must_use]
pub fn percent(fraction: f64) -> String {
    let halves = fraction * 200.0;
    let shown = if (halves - halves.round()).abs() < 1e-6 { halves / 2.0 } else { (fraction * 100.0).round() };
    format!("{shown} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_whole_percent_or_the_half_that_they_are() {
        let shown = [0.0, 0.15625, 0.625, 2.0 / 3.0, 1.0].map(percent);
        assert_eq!(shown, ["0 %", "16 %", "62.5 %", "67 %", "100 %"]);
    }
}

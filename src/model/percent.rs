//! Shares in words, the same in every report.

/// A fraction as whole percent, or as the half percent that it is: `50 %`, `62.5 %`, `67 %`.
#[must_use]
pub fn percent(fraction: f64) -> String {
    let halves = fraction * 200.0;
    let is_half = (halves - halves.round()).abs() < 1e-6;
    // Rounded in both cases: 0.15 times 100 is a little more than 15.
    let shown = if is_half { halves.round() / 2.0 } else { (fraction * 100.0).round() };
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

    #[test]
    fn what_a_fraction_of_two_cannot_hold_is_no_digit() {
        let shown = [0.15, 0.1 + 0.2, 0.35, 0.565, 0.29, 1.0 - 0.45, 0.999_999_999].map(percent);
        assert_eq!(shown, ["15 %", "30 %", "35 %", "56.5 %", "29 %", "55 %", "100 %"]);
        for halves in 0..=200_u32 {
            let text = percent(f64::from(halves) / 200.0);
            assert!(text.len() <= "99.5 %".len(), "{text}");
        }
    }
}

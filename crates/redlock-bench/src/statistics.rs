//! Figures of several repeats.

/// The figures of the repeats, in their order.
pub(crate) type Series = Vec<f64>;

/// What is said of several figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Summary {
    /// Finds them; all are no number if there are no figures, or if one is no finite number.
    pub(crate) fn of(figures: &[f64]) -> Self {
        let mut sorted = figures.to_vec();
        if !sorted.iter().all(|figure| figure.is_finite()) {
            sorted.clear();
        }
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        Self {
            median: at(sorted.len() / 2),
            min: at(0),
            max: at(sorted.len().saturating_sub(1)),
        }
    }
}

/// Divides the figures of each repeat: a repeat that was disturbed disturbs both.
pub(crate) fn ratios(figures: &[f64], bases: &[f64]) -> Series {
    let ratios = figures.iter().zip(bases);
    ratios.map(|(figure, base)| figure / base).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_of_what_was_measured() {
        let summary = Summary::of(&[3.0, 100.0, 1.0, 2.0, 4.0]);
        assert_eq!(
            (summary.median, summary.min, summary.max),
            (3.0, 1.0, 100.0)
        );
        assert!(Summary::of(&[]).median.is_nan());
        assert!(Summary::of(&[1.0, 2.0, f64::INFINITY]).median.is_nan());
    }

    #[test]
    fn a_disturbed_repeat_does_not_change_the_median_of_the_ratios() {
        let ratios = ratios(&[2.0, 200.0, 2.2], &[1.0, 100.0, 1.0]);
        assert_eq!(Summary::of(&ratios).median, 2.0);
    }
}

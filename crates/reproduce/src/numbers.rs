//! Means, ends and digits.

/// Three digits that count, or all before the point.
pub(super) fn rounded(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Smallest and largest.
pub(super) fn ends(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    values.into_iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (value.min(low), value.max(high)))
}

/// The mean of ratios: geometric. 1 if there are none.
pub(super) fn mean_ratio(ratios: impl IntoIterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> = ratios.into_iter().map(f64::ln).collect();
    (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp()
}

/// `3`, `1, 2, 4`
pub(super) fn listed<T: ToString>(values: impl IntoIterator<Item = T>) -> String {
    values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>().join(", ")
}

/// `4 KiB`
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!([1.234, 12.34, 123.4].map(rounded), ["1.23", "12.3", "123"]);
        assert_eq!((ends([2.0, 1.0, 3.0]), mean_ratio([1.0, 4.0]), mean_ratio([])), ((1.0, 3.0), 2.0, 1.0));
        assert_eq!(
            (listed([1, 2]), size(512), size(4096), size(1 << 20)),
            ("1, 2".into(), "512 B".into(), "4 KiB".into(), "1 MiB".into())
        );
    }
}

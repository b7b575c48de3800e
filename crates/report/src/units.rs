//! Bytes, seconds and times as much, as people read them.

/// The class of a size: the least power of two that is not less.
pub fn class(bytes: usize) -> u64 {
    if bytes == 0 { 0 } else { bytes.next_power_of_two() as u64 }
}

/// `512 B`, `4 KiB`, `1.5 MiB`
pub fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = (1..units.len()).rev().find(|unit| bytes >= 1 << (10 * unit)).unwrap_or(0);
    let scaled = bytes as f64 / (1u64 << (10 * unit)) as f64;
    if scaled.fract() == 0.0 { format!("{scaled} {}", units[unit]) } else { format!("{scaled:.1} {}", units[unit]) }
}

/// `<= 4 KiB`
pub(crate) fn up_to(bytes: Option<u64>) -> String {
    bytes.map_or("?".into(), |bytes| if bytes <= 1 { size(bytes) } else { format!("<= {}", size(bytes)) })
}

/// `0 s`, `1.5 us`, `230.0 ms`, `1.25 s`, `12.0 s`
pub(crate) fn time(seconds: f64) -> String {
    match seconds.abs() {
        0.0 => "0 s".into(),
        most if most >= 10.0 => format!("{seconds:.1} s"),
        most if most >= 1.0 => format!("{seconds:.2} s"),
        most if most >= 1e-3 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{:.1} us", seconds * 1e6),
    }
}

/// A time and a longer one, in the unit of that: `0.4 (0.6) ms`
pub(crate) fn times(less: f64, more: f64) -> String {
    let (scale, unit) = match more {
        _ if more >= 1.0 => (1.0, "s"),
        _ if more >= 1e-3 => (1e3, "ms"),
        _ => (1e6, "us"),
    };
    format!("{:.1} ({:.1}) {unit}", less * scale, more * scale)
}

/// What one is worth beside another, in the words of all tables: no more than a twentieth apart is as fast.
pub(crate) fn gain(one: f64, other: f64) -> String {
    match other.max(1e-12) / one.max(1e-12) {
        ratio if ratio > 1.05 => format!("{ratio:.2}x faster"),
        ratio if ratio < 1.0 / 1.05 => format!("{:.2}x slower", 1.0 / ratio),
        _ => "as fast".into(),
    }
}

/// `1 rank`, `2 ranks`
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `one`, `one and two`, `one, two and three`
pub(crate) fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_that_fit() {
        assert_eq!([0, 512, 4096, 1 << 20, 1536].map(size), ["0 B", "512 B", "4 KiB", "1 MiB", "1.5 KiB"]);
        assert_eq!([0.0, 2e-6, 0.5, 1.25, 12.0].map(time), ["0 s", "2.0 us", "500.0 ms", "1.25 s", "12.0 s"]);
        assert_eq!([Some(0), Some(8), None].map(up_to), ["0 B", "<= 8 B", "?"]);
        assert_eq!(
            [times(2e-6, 4e-6), times(4e-4, 1e-3), times(0.5, 2.0)],
            ["2.0 (4.0) us", "0.4 (1.0) ms", "0.5 (2.0) s"]
        );
    }

    #[test]
    fn what_is_gained_or_lost_is_said() {
        assert_eq!([gain(1.0, 1.04), gain(1.04, 1.0)], ["as fast", "as fast"]);
        assert_eq!([gain(1.0, 1.5), gain(3.0, 1.0)], ["1.50x faster", "3.00x slower"]);
    }

    #[test]
    fn lists_read_like_sentences() {
        let words = ["a", "b", "c"].map(String::from);
        assert_eq!([listed(&words[..1]), listed(&words[..2]), listed(&words)], ["a", "a and b", "a, b and c"]);
        assert_eq!([counted(1, "rank"), counted(2, "rank")], ["1 rank", "2 ranks"]);
    }
}

//! Bytes and seconds, as people read them.

/// The class of a size: the least power of two that is not less.
pub(crate) fn class(bytes: usize) -> u64 {
    if bytes == 0 { 0 } else { bytes.next_power_of_two() as u64 }
}

/// `512 B`, `4 KiB`, `1.5 MiB`
pub(super) fn size(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = (1..units.len()).rev().find(|unit| bytes >= 1 << (10 * unit)).unwrap_or(0);
    let scaled = bytes as f64 / (1u64 << (10 * unit)) as f64;
    if scaled.fract() == 0.0 { format!("{scaled} {}", units[unit]) } else { format!("{scaled:.1} {}", units[unit]) }
}

/// `<= 4 KiB`
pub(super) fn up_to(bytes: Option<u64>) -> String {
    bytes.map_or("?".into(), |bytes| if bytes <= 1 { size(bytes) } else { format!("<= {}", size(bytes)) })
}

/// `1.5 us`, `230.0 ms`, `12.0 s`
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds >= 10.0 => format!("{seconds:.1} s"),
        _ if seconds >= 1e-3 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{:.1} us", seconds * 1e6),
    }
}

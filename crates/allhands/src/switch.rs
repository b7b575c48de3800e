//! Words that switch a setting on or off.

/// Whether a word switches something on or off, in any case; nothing where it does neither, and of a variable that is set to nothing.
///
/// ```
/// use allhands::raw::switched;
/// assert_eq!(["on", "1", "Yes", "TRUE"].map(switched), [Some(true); 4]);
/// assert_eq!(["off", "0", "No", "FALSE"].map(switched), [Some(false); 4]);
/// assert_eq!(["", "of", "2"].map(switched), [None; 3]);
/// ```
pub fn switched(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "on" | "1" | "yes" | "true" => Some(true),
        "off" | "0" | "no" | "false" => Some(false),
        _ => None,
    }
}

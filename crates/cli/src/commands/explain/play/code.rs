//! Lists of small numbers as text that JSON and HTML leave alone: five bits a letter, the sixth says that more follow.

const LETTERS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

/// Appends a number: one letter up to 31, two up to 1023.
pub(super) fn push(text: &mut String, mut number: usize) {
    while number >= 32 {
        text.push(char::from(LETTERS[32 + number % 32]));
        number /= 32;
    }
    text.push(char::from(LETTERS[number]));
}

/// The numbers of a text; the page has the same function.
#[cfg(test)]
pub(super) fn numbers(text: &str) -> Vec<usize> {
    let (mut all, mut number, mut shift) = (Vec::new(), 0, 0);
    for letter in text.bytes() {
        let bits = LETTERS.iter().position(|&known| known == letter).expect("a letter of ours");
        number |= (bits % 32) << shift;
        shift += 5;
        if bits < 32 {
            all.push(number);
            (number, shift) = (0, 0);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_take_one_letter() {
        let mut text = String::new();
        [0, 31, 32, 1023, 1024, 123_456_789].into_iter().for_each(|number| push(&mut text, number));
        assert!(text.starts_with("0VW1_VWW1"), "{text}");
        assert_eq!(numbers(&text), [0, 31, 32, 1023, 1024, 123_456_789]);
    }
}

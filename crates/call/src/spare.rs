//! Memory for copies of what programs hand over, used again: new memory costs more to get than most copies, page by page.

use std::sync::Mutex;

use crate::locks::lock;

/// What was given back. Few, since few collectives are under way at the same time.
static SPARE: Mutex<Vec<Vec<u128>>> = Mutex::new(Vec::new());

/// No more are kept, nor more of all of them together than so many words of 16 bytes.
const MOST: usize = 8;
const MOST_WORDS: usize = (64 << 20) / 16;

/// Room for so many bytes, which hold anything.
pub(crate) fn take(bytes: usize) -> Vec<u128> {
    let words = bytes.div_ceil(16);
    if words == 0 {
        return Vec::new();
    }
    let mut spare = lock(&SPARE);
    let fits = |room: &&(usize, usize)| room.1 >= words;
    let rooms: Vec<(usize, usize)> = spare.iter().map(Vec::len).enumerate().collect();
    // The smallest that is large enough.
    match rooms.iter().filter(fits).min_by_key(|room| room.1) {
        Some(&(index, _)) => spare.swap_remove(index),
        None => {
            drop(spare);
            vec![0; words]
        }
    }
}

/// Gives room back. Where there is too much, what was given back first goes.
pub(crate) fn give(room: Vec<u128>) {
    if room.is_empty() || room.len() > MOST_WORDS {
        return;
    }
    let mut spare = lock(&SPARE);
    spare.push(room);
    while spare.len() > MOST || spare.iter().map(Vec::len).sum::<usize>() > MOST_WORDS {
        spare.remove(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_used_again_and_there_is_never_too_much_of_it() {
        assert!(take(0).is_empty());
        let (mut small, large) = (take(100), take(5000));
        small[0] = 77;
        let (short, long) = (small.as_ptr() as usize, large.as_ptr() as usize);
        give(small);
        give(large);
        let (large, small) = (take(5000), take(1));
        assert_eq!((large.as_ptr() as usize, small.as_ptr() as usize), (long, short), "the smallest that suffices");
        (0..3 * MOST).for_each(|_| give(vec![0; 10]));
        assert_eq!(lock(&SPARE).len(), MOST);
        give(vec![0; MOST_WORDS]);
        assert_eq!(lock(&SPARE).len(), 1, "it takes all that may be kept");
        give(vec![0; MOST_WORDS + 1]);
        assert_eq!(lock(&SPARE)[0].len(), MOST_WORDS);
        lock(&SPARE).clear();
    }
}

//! A set of block numbers, kept as runs: as small as the spans it came from.

use std::ops::Range;

/// Ascending, disjoint runs that do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockSet {
    runs: Vec<Range<usize>>,
}

impl BlockSet {
    pub(crate) fn insert(&mut self, new: Range<usize>) {
        if new.is_empty() {
            return;
        }
        let from = self.runs.partition_point(|run| run.end < new.start);
        let to = self.runs.partition_point(|run| run.start <= new.end);
        let start = self.runs.get(from).filter(|_| from < to).map_or(new.start, |run| run.start.min(new.start));
        let end = self.runs[from..to].last().map_or(new.end, |run| run.end.max(new.end));
        self.runs.splice(from..to, std::iter::once(start..end));
    }

    /// Cuts a range into the pieces that lie inside the set (`true`) and outside.
    pub(crate) fn split(&self, range: Range<usize>) -> Vec<(Range<usize>, bool)> {
        let mut pieces = Vec::new();
        if range.is_empty() {
            return pieces;
        }
        let mut at = range.start;
        let first = self.runs.partition_point(|run| run.end <= range.start);
        for run in self.runs[first..].iter().take_while(|run| run.start < range.end) {
            if at < run.start {
                pieces.push((at..run.start, false));
            }
            pieces.push((at.max(run.start)..run.end.min(range.end), true));
            at = run.end;
        }
        if at < range.end {
            pieces.push((at..range.end, false));
        }
        pieces
    }

    /// How many blocks.
    pub(crate) fn len(&self) -> usize {
        self.runs.iter().map(ExactSizeIterator::len).sum()
    }

    #[cfg(test)]
    fn runs(&self) -> &[Range<usize>] {
        &self.runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_a_set_of_numbers(ranges in prop::collection::vec((0usize..60, 0usize..9), 0..20), (start, len) in (0usize..70, 0usize..30)) {
            let mut set = BlockSet::default();
            let mut model = std::collections::BTreeSet::new();
            for (start, len) in ranges {
                set.insert(start..start + len);
                model.extend(start..start + len);
            }
            prop_assert!(set.runs().windows(2).all(|pair| pair[0].end < pair[1].start));
            let members: Vec<usize> = set.runs().iter().cloned().flatten().collect();
            prop_assert_eq!(members, model.iter().copied().collect::<Vec<_>>());
            let pieces = set.split(start..start + len);
            prop_assert_eq!(pieces.iter().flat_map(|(piece, _)| piece.clone()).collect::<Vec<_>>(), (start..start + len).collect::<Vec<_>>());
            for (piece, inside) in pieces {
                prop_assert!(!piece.is_empty() && piece.clone().all(|block| model.contains(&block) == inside));
            }
        }
    }
}

//! The tree of pipelines: member 0 is its root, the others have up to `fan` children each, filled level by level.
//!
//! The root has as few children as the depth allows, since what it sends is sent by nobody else. With `fan` 1 the tree is a chain.
//!
//! ```text
//! 8 members, fan 2   0 - 1 - 2 - 4
//!                        |   ` - 5
//!                        ` - 3 - 6
//!                            ` - 7
//! ```

use std::ops::Range;

#[derive(Clone, Copy)]
pub(super) struct Tree {
    size: usize,
    fan: usize,
    /// How many children the root has.
    of_root: usize,
}

impl Tree {
    pub(super) fn new(size: usize, fan: usize) -> Tree {
        let others = size - 1;
        // The members of the largest tree below a child of the root, all levels full.
        let mut below = if fan == 1 { others.max(1) } else { 1 };
        while below * fan < others {
            below = below * fan + 1;
        }
        Tree { size, fan, of_root: others.div_ceil(below) }
    }

    pub(super) fn parent(&self, member: usize) -> Option<usize> {
        let other = member.checked_sub(1)?;
        Some(other.checked_sub(self.of_root).map_or(0, |lower| lower / self.fan + 1))
    }

    pub(super) fn children(&self, member: usize) -> Range<usize> {
        let (first, count) = match member.checked_sub(1) {
            None => (1, self.of_root),
            Some(other) => (1 + self.of_root + other * self.fan, self.fan),
        };
        first.min(self.size)..(first + count).min(self.size)
    }

    /// How many edges lie between a member and the root.
    pub(super) fn depth_of(&self, member: usize) -> usize {
        match self.fan {
            1 => member,
            _ => std::iter::successors(Some(member), |&member| self.parent(member)).count() - 1,
        }
    }

    /// The same of the deepest, which is the last.
    pub(super) fn depth(&self) -> usize {
        self.depth_of(self.size - 1)
    }

    /// The most children that a member has.
    pub(super) fn widest(&self) -> usize {
        self.of_root.max(self.children(1).len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_and_children_agree_and_no_tree_of_that_fan_is_less_deep() {
        for (size, fan) in (1..80).flat_map(|size| (1..9).map(move |fan| (size, fan))) {
            let tree = Tree::new(size, fan);
            for member in 0..size {
                assert!(tree.children(member).all(|child| tree.parent(child) == Some(member)), "{member} of {size}");
                assert!(tree.children(member).len() <= fan && tree.children(member).len() <= tree.widest());
                assert!(tree.depth_of(member) <= tree.depth());
            }
            assert_eq!((0..size).map(|member| tree.children(member).len()).sum::<usize>(), size - 1);
            let full = (0u32..).find(|&depth| (0..=depth).map(|level| fan.pow(level)).sum::<usize>() >= size);
            assert_eq!(Some(tree.depth() as u32), full, "{size}, fan {fan}");
        }
    }
}

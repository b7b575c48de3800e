//! Allgathers: movements in which rank r begins with block r in place and receives each other block once.

pub(crate) mod windows;

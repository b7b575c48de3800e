/// The version of the C interface, which is in the name of the library that programs ask for (`liballhands.so.1`). It changes when
/// a program that was built before would no longer run.
pub const ALLHANDS_ABI_VERSION: i32 = 1;

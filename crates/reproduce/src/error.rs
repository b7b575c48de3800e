//! Why a figure is not made.

/// Why a figure is not made, or not written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A schedule that cannot be made for so many ranks.
    #[error(transparent)]
    Request(#[from] allhands_schedule::Error),
    /// Something that was named is not there, or cannot be written.
    #[error("{0}")]
    Named(String),
    /// A schedule that is wrong.
    #[error("{0}")]
    Wrong(String),
    /// Thread ranks that failed.
    #[error("{0}")]
    Ranks(String),
}

/// Or why not.
pub type Result<T> = std::result::Result<T, Error>;

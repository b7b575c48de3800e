//! The beginning and the end of MPI.

use std::ffi::{c_char, c_int};

use super::own::{function, native};
use super::{quirks, session};
use crate::job;

function! { "Init" "" (count: *mut c_int, words: *mut *mut *mut c_char), own => {
    let mut provided: c_int = 0;
    begun(|| match job::thread_level() {
        Some(level) => native!("Init_thread" (count, words, level, &raw mut provided)).unwrap_or_else(own),
        None => own(),
    })
}, None }
function! { "Init_thread" ""
(count: *mut c_int, words: *mut *mut *mut c_char, required: c_int, provided: *mut c_int), own => {
    begun(|| match job::thread_level() {
        Some(level) => native!("Init_thread" (count, words, level, provided)).unwrap_or_else(own),
        None => own(),
    })
}, None }
function! { "Finalize" "" (), own => {
    session::end();
    own()
}, None }

/// MPI is initialised.
fn begun(own: impl FnOnce() -> c_int) -> c_int {
    job::announce();
    let code = own();
    if code == 0 {
        session::begin(quirks::choices);
    }
    code
}

//! HIP's runtime.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use super::driver::{Driver, Library, Way, functions, outcome};

functions! { Functions {
    attributes c"hipPointerGetAttributes" (*mut Attributes, *const u8);
    copy c"hipMemcpy" (*mut u8, *const u8, usize, c_int);
    synchronize c"hipStreamSynchronize" (*mut c_void);
    device c"hipGetDevice" (*mut c_int);
    set_device c"hipSetDevice" (c_int);
    version c"hipRuntimeGetVersion" (*mut c_int);
    last_error c"hipGetLastError" ();
    peek_error c"hipPeekAtLastError" ();
} }

/// The beginning of what the runtime tells about a pointer, the same in all versions, and room for more.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: c_int,
    device: c_int,
    device_pointer: usize,
    host_pointer: usize,
    is_managed: c_int,
    flags: u32,
    more: [u64; 12],
}

/// `hipMemcpyDefault`: the runtime knows what is where.
const DEFAULT: c_int = 4;

struct Hip {
    functions: Functions,
    /// Kinds of memory that are copied: device, managed, unified. Their numbers changed with version 6.
    copied: [c_int; 3],
}

pub(super) fn open(library: Library) -> Option<Box<dyn Driver>> {
    let functions = Functions::of(&library)?;
    let mut version = 0;
    // SAFETY: a variable of ours.
    let code = unsafe { (functions.version)(&mut version) };
    // Before 6 an earlier version said only host, device, array, unified and managed, from 0 on.
    let copied = if code == 0 && version < 60_000_000 { [1, 4, 3] } else { [2, 3, 11] };
    Some(Box::new(Hip { functions, copied }))
}

impl Driver for Hip {
    fn name(&self) -> &'static str {
        "HIP"
    }

    /// The number of the device.
    fn place(&self, at: *const u8) -> Option<usize> {
        let mut attributes = Attributes::default();
        // SAFETY: the runtime knows of any address whether it is its own, and writes no more than there is room for.
        let code = unsafe {
            let before = (self.functions.peek_error)();
            let code = (self.functions.attributes)(&mut attributes, at);
            // The program shall not find an error that it has not made.
            if code != 0 && before == 0 {
                (self.functions.last_error)();
            }
            code
        };
        let theirs = code == 0 && (self.copied.contains(&attributes.kind) || attributes.is_managed != 0);
        theirs.then_some(attributes.device.max(0) as usize)
    }

    unsafe fn copy(&self, place: usize, way: Way, to: *mut u8, from: *const u8, bytes: usize) -> Result<(), String> {
        let (device, mut now) = (place as c_int, 0);
        // SAFETY: a variable of ours, and devices that there are.
        unsafe {
            outcome("hipGetDevice", (self.functions.device)(&mut now))?;
            if now != device {
                outcome("hipSetDevice", (self.functions.set_device)(device))?;
            }
        }
        // SAFETY: the caller's promise.
        let copied = unsafe {
            outcome("hipMemcpy", (self.functions.copy)(to, from, bytes, DEFAULT)).and_then(|()| match way {
                Way::ToHost => Ok(()),
                // As with CUDA, the bytes may not be there yet.
                Way::ToDevice => outcome("hipStreamSynchronize", (self.functions.synchronize)(null_mut())),
            })
        };
        if now != device {
            // SAFETY: the thread's device before.
            unsafe { (self.functions.set_device)(now) };
        }
        copied
    }
}

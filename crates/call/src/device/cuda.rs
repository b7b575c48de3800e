//! CUDA's driver.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use super::driver::{Driver, Library, Way, functions, outcome};

functions! { Functions {
    attribute c"cuPointerGetAttribute" (*mut c_void, c_int, usize);
    to_host c"cuMemcpyDtoH_v2" (*mut u8, usize, usize);
    to_device c"cuMemcpyHtoD_v2" (usize, *const u8, usize);
    synchronize c"cuStreamSynchronize" (*mut c_void);
    push c"cuCtxPushCurrent_v2" (*mut c_void);
    pop c"cuCtxPopCurrent_v2" (*mut *mut c_void);
    device c"cuDeviceGet" (*mut c_int, c_int);
    retain c"cuDevicePrimaryCtxRetain" (*mut *mut c_void, c_int);
} }

/// What is asked of a pointer.
const CONTEXT: c_int = 1;
const MEMORY_TYPE: c_int = 2;
const IS_MANAGED: c_int = 8;
const DEVICE_ORDINAL: c_int = 9;

/// Memory types.
const HOST: u32 = 1;
const DEVICE: u32 = 2;
const UNIFIED: u32 = 4;

struct Cuda {
    functions: Functions,
    /// Contexts of devices, for memory that has none.
    primary: Mutex<HashMap<c_int, usize>>,
}

pub(super) fn open(library: Library) -> Option<Box<dyn Driver>> {
    Some(Box::new(Cuda { functions: Functions::of(&library)?, primary: Mutex::default() }))
}

impl Cuda {
    /// # Safety
    /// `T` is what the attribute is.
    unsafe fn ask<T: Default>(&self, attribute: c_int, at: *const u8) -> Option<T> {
        let mut answer = T::default();
        // SAFETY: the caller's promise; the driver knows of any address whether it is its own.
        let code = unsafe { (self.functions.attribute)((&raw mut answer).cast(), attribute, at as usize) };
        (code == 0).then_some(answer)
    }

    /// The context of a device, for memory that was made without one, such as that of a pool.
    fn primary(&self, ordinal: c_int) -> Option<usize> {
        let mut primary = self.primary.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = primary.get(&ordinal) {
            return Some(*context);
        }
        let (mut device, mut context) = (0, null_mut());
        // SAFETY: two variables of ours. The context stays retained, once a device.
        let code = unsafe {
            match (self.functions.device)(&mut device, ordinal) {
                0 => (self.functions.retain)(&mut context, device),
                code => code,
            }
        };
        (code == 0).then(|| primary.insert(ordinal, context as usize)).map(|_| context as usize)
    }
}

impl Driver for Cuda {
    fn name(&self) -> &'static str {
        "CUDA"
    }

    /// The context; 0: that of the thread.
    fn place(&self, at: *const u8) -> Option<usize> {
        // SAFETY: the types of these attributes, which are asked for only where the pointer is CUDA's.
        unsafe {
            let theirs = match self.ask::<u32>(MEMORY_TYPE, at)? {
                DEVICE | UNIFIED => true,
                HOST => self.ask::<u32>(IS_MANAGED, at).is_some_and(|managed| managed != 0),
                _ => false,
            };
            if !theirs {
                return None;
            }
            let context = self.ask::<usize>(CONTEXT, at).filter(|context| *context != 0);
            Some(context.or_else(|| self.primary(self.ask::<c_int>(DEVICE_ORDINAL, at)?)).unwrap_or(0))
        }
    }

    unsafe fn copy(&self, place: usize, way: Way, to: *mut u8, from: *const u8, bytes: usize) -> Result<(), String> {
        let Functions { push, pop, .. } = self.functions;
        if place != 0 {
            // SAFETY: the context of memory that is allocated.
            outcome("cuCtxPushCurrent", unsafe { push(place as *mut c_void) })?;
        }
        // SAFETY: the caller's promise.
        let copied = unsafe {
            match way {
                Way::ToHost => outcome("cuMemcpyDtoH", (self.functions.to_host)(to, from as usize, bytes)),
                // It may return before the bytes are there: what a program starts next, in a stream of its own, would not wait for them.
                Way::ToDevice => outcome("cuMemcpyHtoD", (self.functions.to_device)(to as usize, from, bytes))
                    .and_then(|()| outcome("cuStreamSynchronize", (self.functions.synchronize)(null_mut()))),
            }
        };
        if place != 0 {
            // SAFETY: what was pushed.
            unsafe { pop(&mut null_mut()) };
        }
        copied
    }
}

//! Level Zero's loader. Memory of its first driver is known; others were not tried.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, PoisonError};

use super::driver::{Driver, Library, Way, functions, outcome};

type Object = *mut c_void;

functions! { Functions {
    init c"zeInit" (u32);
    drivers c"zeDriverGet" (*mut u32, *mut Object);
    devices c"zeDeviceGet" (Object, *mut u32, *mut Object);
    context c"zeContextCreate" (Object, *const ContextDescription, *mut Object);
    properties c"zeMemGetAllocProperties" (Object, *const u8, *mut Properties, *mut Object);
    list c"zeCommandListCreateImmediate" (Object, Object, *const QueueDescription, *mut Object);
    copy c"zeCommandListAppendMemoryCopy" (Object, *mut u8, *const u8, usize, Object, u32, *mut Object);
} }

/// What descriptions say they are.
const CONTEXT_DESCRIPTION: u32 = 0xd;
const QUEUE_DESCRIPTION: u32 = 0xe;
const PROPERTIES: u32 = 0x17;

#[repr(C)]
struct ContextDescription {
    kind: u32,
    next: *const c_void,
    flags: u32,
}

#[repr(C)]
struct QueueDescription {
    kind: u32,
    next: *const c_void,
    ordinal: u32,
    index: u32,
    flags: u32,
    mode: u32,
    priority: u32,
}

/// A call returns when its work is done.
const SYNCHRONOUS: u32 = 1;

#[repr(C)]
struct Properties {
    kind: u32,
    next: *mut c_void,
    memory: u32,
    id: u64,
    page_size: u64,
}

/// Kinds of memory that are copied.
const DEVICE: u32 = 2;
const SHARED: u32 = 3;

struct LevelZero {
    functions: Functions,
    context: usize,
    /// The first device, for memory that belongs to none.
    device: usize,
    /// A command list for each device, which one thread uses at a time.
    lists: Mutex<HashMap<usize, usize>>,
}

pub(super) fn open(library: Library) -> Option<Box<dyn Driver>> {
    let functions = Functions::of(&library)?;
    let first = |find: &dyn Fn(*mut u32, *mut Object) -> c_int| {
        let (mut count, mut object) = (1, null_mut());
        (find(&mut count, &mut object) == 0 && count > 0 && !object.is_null()).then_some(object)
    };
    let wanted = ContextDescription { kind: CONTEXT_DESCRIPTION, next: null(), flags: 0 };
    let mut context = null_mut();
    // SAFETY: variables of ours, and objects that the loader has named. Initialising it twice is allowed.
    let device = unsafe {
        if (functions.init)(0) != 0 {
            return None;
        }
        let driver = first(&|count, object| (functions.drivers)(count, object))?;
        if (functions.context)(driver, &wanted, &mut context) != 0 {
            return None;
        }
        first(&|count, object| (functions.devices)(driver, count, object))?
    };
    let (context, device) = (context as usize, device as usize);
    Some(Box::new(LevelZero { functions, context, device, lists: Mutex::default() }))
}

impl Driver for LevelZero {
    fn name(&self) -> &'static str {
        "Level Zero"
    }

    /// The device.
    fn place(&self, at: *const u8) -> Option<usize> {
        let mut properties = Properties { kind: PROPERTIES, next: null_mut(), memory: 0, id: 0, page_size: 0 };
        let mut device = null_mut();
        // SAFETY: variables of ours; the driver knows of any address whether it is its own.
        let code = unsafe { (self.functions.properties)(self.context as Object, at, &mut properties, &mut device) };
        let theirs = code == 0 && matches!(properties.memory, DEVICE | SHARED);
        theirs.then_some(if device.is_null() { self.device } else { device as usize })
    }

    unsafe fn copy(&self, place: usize, _: Way, to: *mut u8, from: *const u8, bytes: usize) -> Result<(), String> {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let list = match lists.get(&place) {
            Some(list) => *list,
            None => {
                let (kind, next) = (QUEUE_DESCRIPTION, null());
                let wanted =
                    QueueDescription { kind, next, ordinal: 0, index: 0, flags: 0, mode: SYNCHRONOUS, priority: 0 };
                let mut list = null_mut();
                // SAFETY: a context and a device of the driver, and a variable of ours.
                let code =
                    unsafe { (self.functions.list)(self.context as Object, place as Object, &wanted, &mut list) };
                outcome("zeCommandListCreateImmediate", code)?;
                lists.insert(place, list as usize);
                list as usize
            }
        };
        // SAFETY: the caller's promise, and a list that no other thread uses now.
        let code = unsafe { (self.functions.copy)(list as Object, to, from, bytes, null_mut(), 0, null_mut()) };
        outcome("zeCommandListAppendMemoryCopy", code)
    }
}

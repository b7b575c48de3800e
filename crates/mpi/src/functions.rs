//! The functions of the library, bound once to their `PMPI_` names.
//!
//! These names are what a profiling or preload library leaves alone, so that our own calls are never intercepted, not even
//! by ourselves.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_void};

use crate::{Handle, RawStatus, UserFunction};

type Send = *const c_void;
type Receive = *mut c_void;
type Handles = *mut Handle;
type Counts = *const c_int;
type Aint = isize;
type Count = c_longlong;
type Out = *mut c_int;

/// Decides whether a duplicate of a communicator gets an attribute: communicator, key, extra state, value, address of the
/// duplicate's value, address of the answer. Narrow communicators come in words whose upper half may hold anything.
pub type CopyFunction = unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;

/// Told that an attribute goes, as it does with its communicator: communicator, key, value, extra state.
pub type DeleteFunction = unsafe extern "C" fn(Handle, c_int, *mut c_void, *mut c_void) -> c_int;

macro_rules! functions {
    (
        needed { $($field:ident $name:literal ($($arg:ty),*);)* }
        optional { $($option:ident $option_name:literal ($($option_arg:ty),*) -> $result:ty;)* }
    ) => {
        /// The raw functions. Handles are passed as the [crate's documentation](crate) says; pointers to handles point to
        /// one [`Handle`] with a zeroed upper half, or to the library's own array ([`Handles::as_mut_ptr`]).
        ///
        /// [`Handles::as_mut_ptr`]: crate::Handles::as_mut_ptr
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub struct Functions {
            $(#[doc = concat!("`MPI_", $name, "`")] pub $field: unsafe extern "C-unwind" fn($($arg),*) -> c_int,)*
            $(#[doc = concat!("`MPI_", $option_name, "`, where the library has it")]
            pub $option: Option<unsafe extern "C-unwind" fn($($option_arg),*) -> $result>,)*
        }

        impl Functions {
            /// Binds all functions with `find`, which gives a symbol's address or null. The error is the name of a
            /// function that is missing though needed.
            ///
            /// # Safety
            /// Under the names of MPI functions, `find` must give functions of an MPI whose interface is one of
            /// [`Abi`](crate::Abi).
            pub unsafe fn bind(find: impl Fn(&CStr) -> *mut c_void) -> Result<Functions, &'static str> {
                let find = |profiling: &'static str, plain: &'static str| {
                    [profiling, plain].into_iter().find_map(|name| {
                        let address = find(CStr::from_bytes_until_nul(name.as_bytes()).ok()?);
                        (!address.is_null()).then_some(address)
                    })
                };
                Ok(Functions {
                    $($field: {
                        let address = find(concat!("PMPI_", $name, "\0"), concat!("MPI_", $name, "\0"))
                            .ok_or(concat!("MPI_", $name))?;
                        // SAFETY: the caller vouches for the function behind the name, whose C signature this is.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn($($arg),*) -> c_int>(address)
                        }
                    },)*
                    $($option: find(concat!("PMPI_", $option_name, "\0"), concat!("MPI_", $option_name, "\0"))
                        .map(|address| {
                            // SAFETY: as above.
                            unsafe {
                                std::mem::transmute::<
                                    *mut c_void,
                                    unsafe extern "C-unwind" fn($($option_arg),*) -> $result,
                                >(address)
                            }
                        }),)*
                })
            }
        }
    };
}

functions! {
    needed {
        init_thread "Init_thread" (*mut c_int, *mut *mut *mut c_char, c_int, Out);
        initialized "Initialized" (Out);
        finalized "Finalized" (Out);
        query_thread "Query_thread" (Out);
        finalize "Finalize" ();
        abort "Abort" (Handle, c_int);
        get_version "Get_version" (Out, Out);
        get_library_version "Get_library_version" (*mut c_char, Out);
        error_class "Error_class" (c_int, Out);
        error_string "Error_string" (c_int, *mut c_char, Out);

        comm_rank "Comm_rank" (Handle, Out);
        comm_size "Comm_size" (Handle, Out);
        comm_remote_size "Comm_remote_size" (Handle, Out);
        comm_dup "Comm_dup" (Handle, Handles);
        comm_split "Comm_split" (Handle, c_int, c_int, Handles);
        comm_split_type "Comm_split_type" (Handle, c_int, c_int, Handle, Handles);
        comm_free "Comm_free" (Handles);
        comm_compare "Comm_compare" (Handle, Handle, Out);
        comm_test_inter "Comm_test_inter" (Handle, Out);
        comm_get_attr "Comm_get_attr" (Handle, c_int, *mut c_void, Out);
        comm_set_attr "Comm_set_attr" (Handle, c_int, *mut c_void);
        comm_create_keyval "Comm_create_keyval" (CopyFunction, DeleteFunction, Out, *mut c_void);
        comm_call_errhandler "Comm_call_errhandler" (Handle, c_int);
        comm_set_errhandler "Comm_set_errhandler" (Handle, Handle);
        comm_get_errhandler "Comm_get_errhandler" (Handle, Handles);
        comm_group "Comm_group" (Handle, Handles);
        group_translate_ranks "Group_translate_ranks" (Handle, c_int, Counts, Handle, Out);
        group_incl "Group_incl" (Handle, c_int, Counts, Handles);
        group_free "Group_free" (Handles);

        send "Send" (Send, c_int, Handle, c_int, c_int, Handle);
        recv "Recv" (Receive, c_int, Handle, c_int, c_int, Handle, *mut RawStatus);
        sendrecv "Sendrecv"
            (Send, c_int, Handle, c_int, c_int, Receive, c_int, Handle, c_int, c_int, Handle, *mut RawStatus);
        isend "Isend" (Send, c_int, Handle, c_int, c_int, Handle, Handles);
        irecv "Irecv" (Receive, c_int, Handle, c_int, c_int, Handle, Handles);
        send_init "Send_init" (Send, c_int, Handle, c_int, c_int, Handle, Handles);
        recv_init "Recv_init" (Receive, c_int, Handle, c_int, c_int, Handle, Handles);
        start "Start" (Handles);
        startall "Startall" (c_int, Handles);
        test "Test" (Handles, Out, *mut RawStatus);
        wait "Wait" (Handles, *mut RawStatus);
        testall "Testall" (c_int, Handles, Out, *mut RawStatus);
        waitall "Waitall" (c_int, Handles, *mut RawStatus);
        request_free "Request_free" (Handles);
        cancel "Cancel" (Handles);
        iprobe "Iprobe" (c_int, c_int, Handle, Out, *mut RawStatus);
        get_count "Get_count" (*const RawStatus, Handle, Out);

        barrier "Barrier" (Handle);
        bcast "Bcast" (Receive, c_int, Handle, c_int, Handle);
        allgather "Allgather" (Send, c_int, Handle, Receive, c_int, Handle, Handle);
        allgatherv "Allgatherv" (Send, c_int, Handle, Receive, Counts, Counts, Handle, Handle);
        alltoall "Alltoall" (Send, c_int, Handle, Receive, c_int, Handle, Handle);
        alltoallv "Alltoallv" (Send, Counts, Counts, Handle, Receive, Counts, Counts, Handle, Handle);
        allreduce "Allreduce" (Send, Receive, c_int, Handle, Handle, Handle);
        reduce "Reduce" (Send, Receive, c_int, Handle, Handle, c_int, Handle);
        gather "Gather" (Send, c_int, Handle, Receive, c_int, Handle, c_int, Handle);
        gatherv "Gatherv" (Send, c_int, Handle, Receive, Counts, Counts, Handle, c_int, Handle);
        scatter "Scatter" (Send, c_int, Handle, Receive, c_int, Handle, c_int, Handle);
        scatterv "Scatterv" (Send, Counts, Counts, Handle, Receive, c_int, Handle, c_int, Handle);
        scan "Scan" (Send, Receive, c_int, Handle, Handle, Handle);
        exscan "Exscan" (Send, Receive, c_int, Handle, Handle, Handle);
        reduce_scatter "Reduce_scatter" (Send, Receive, Counts, Handle, Handle, Handle);
        reduce_scatter_block "Reduce_scatter_block" (Send, Receive, c_int, Handle, Handle, Handle);

        type_size "Type_size" (Handle, Out);
        type_get_extent "Type_get_extent" (Handle, *mut Aint, *mut Aint);
        type_get_true_extent "Type_get_true_extent" (Handle, *mut Aint, *mut Aint);
        type_get_envelope "Type_get_envelope" (Handle, Out, Out, Out, Out);
        type_contiguous "Type_contiguous" (c_int, Handle, Handles);
        type_create_hindexed "Type_create_hindexed" (c_int, Counts, *const Aint, Handle, Handles);
        type_create_struct "Type_create_struct" (c_int, Counts, *const Aint, *const c_void, Handles);
        type_commit "Type_commit" (Handles);
        type_free "Type_free" (Handles);
        type_create_keyval "Type_create_keyval" (CopyFunction, DeleteFunction, Out, *mut c_void);
        type_set_attr "Type_set_attr" (Handle, c_int, *mut c_void);
        pack "Pack" (Send, c_int, Handle, Receive, c_int, Out, Handle);
        unpack "Unpack" (Send, c_int, Out, Receive, c_int, Handle, Handle);
        op_create "Op_create" (UserFunction, c_int, Handles);
        op_free "Op_free" (Handles);
        op_commutative "Op_commutative" (Handle, Out);
        reduce_local "Reduce_local" (Send, Receive, c_int, Handle, Handle);
    }
    optional {
        comm_c2f "Comm_c2f" (Handle) -> c_int;
        comm_f2c "Comm_f2c" (c_int) -> Handle;
        file_get_errhandler "File_get_errhandler" (Handle, Handles) -> c_int;
        get_elements_x "Get_elements_x" (*const RawStatus, Handle, *mut Count) -> c_int;
        type_size_x "Type_size_x" (Handle, *mut Count) -> c_int;
        ibarrier "Ibarrier" (Handle, Handles) -> c_int;
        iallreduce "Iallreduce" (Send, Receive, c_int, Handle, Handle, Handle, Handles) -> c_int;
        iallgather "Iallgather" (Send, c_int, Handle, Receive, c_int, Handle, Handle, Handles) -> c_int;
        igather "Igather" (Send, c_int, Handle, Receive, c_int, Handle, c_int, Handle, Handles) -> c_int;
        igatherv "Igatherv" (Send, c_int, Handle, Receive, Counts, Counts, Handle, c_int, Handle, Handles) -> c_int;
        iscatter "Iscatter" (Send, c_int, Handle, Receive, c_int, Handle, c_int, Handle, Handles) -> c_int;
        iscatterv "Iscatterv" (Send, Counts, Counts, Handle, Receive, c_int, Handle, c_int, Handle, Handles) -> c_int;
        iscan "Iscan" (Send, Receive, c_int, Handle, Handle, Handle, Handles) -> c_int;
        iexscan "Iexscan" (Send, Receive, c_int, Handle, Handle, Handle, Handles) -> c_int;
        ibcast "Ibcast" (Receive, c_int, Handle, c_int, Handle, Handles) -> c_int;
        iallgatherv "Iallgatherv" (Send, c_int, Handle, Receive, Counts, Counts, Handle, Handle, Handles) -> c_int;
        ialltoall "Ialltoall" (Send, c_int, Handle, Receive, c_int, Handle, Handle, Handles) -> c_int;
        ialltoallv "Ialltoallv"
            (Send, Counts, Counts, Handle, Receive, Counts, Counts, Handle, Handle, Handles) -> c_int;
        ireduce "Ireduce" (Send, Receive, c_int, Handle, Handle, c_int, Handle, Handles) -> c_int;
        ireduce_scatter "Ireduce_scatter" (Send, Receive, Counts, Handle, Handle, Handle, Handles) -> c_int;
        ireduce_scatter_block "Ireduce_scatter_block"
            (Send, Receive, c_int, Handle, Handle, Handle, Handles) -> c_int;
        allreduce_init "Allreduce_init"
            (Send, Receive, c_int, Handle, Handle, Handle, Handle, Handles) -> c_int;
        allgather_init "Allgather_init"
            (Send, c_int, Handle, Receive, c_int, Handle, Handle, Handle, Handles) -> c_int;
        topo_test "Topo_test" (Handle, Out) -> c_int;
        cart_create "Cart_create" (Handle, c_int, Counts, Counts, c_int, Handles) -> c_int;
        cartdim_get "Cartdim_get" (Handle, Out) -> c_int;
        cart_get "Cart_get" (Handle, c_int, Out, Out, Out) -> c_int;
        graphdims_get "Graphdims_get" (Handle, Out, Out) -> c_int;
        graph_get "Graph_get" (Handle, c_int, c_int, Out, Out) -> c_int;
        dist_graph_neighbors_count "Dist_graph_neighbors_count" (Handle, Out, Out, Out) -> c_int;
        dist_graph_neighbors "Dist_graph_neighbors" (Handle, c_int, Out, Out, c_int, Out, Out) -> c_int;
        neighbor_alltoall "Neighbor_alltoall" (Send, c_int, Handle, Receive, c_int, Handle, Handle) -> c_int;
        ineighbor_alltoall "Ineighbor_alltoall"
            (Send, c_int, Handle, Receive, c_int, Handle, Handle, Handles) -> c_int;
        comm_create_group "Comm_create_group" (Handle, Handle, c_int, Handles) -> c_int;
        comm_get_name "Comm_get_name" (Handle, *mut c_char, Out) -> c_int;

        bcast_c "Bcast_c" (Receive, Count, Handle, c_int, Handle) -> c_int;
        allgather_c "Allgather_c" (Send, Count, Handle, Receive, Count, Handle, Handle) -> c_int;
        alltoall_c "Alltoall_c" (Send, Count, Handle, Receive, Count, Handle, Handle) -> c_int;
        allreduce_c "Allreduce_c" (Send, Receive, Count, Handle, Handle, Handle) -> c_int;
        reduce_c "Reduce_c" (Send, Receive, Count, Handle, Handle, c_int, Handle) -> c_int;
        reduce_scatter_block_c "Reduce_scatter_block_c" (Send, Receive, Count, Handle, Handle, Handle) -> c_int;
        iallreduce_c "Iallreduce_c" (Send, Receive, Count, Handle, Handle, Handle, Handles) -> c_int;
        iallgather_c "Iallgather_c" (Send, Count, Handle, Receive, Count, Handle, Handle, Handles) -> c_int;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn stand_in() {}

    fn address() -> *mut c_void {
        stand_in as unsafe extern "C" fn() as *mut c_void
    }

    #[test]
    fn profiling_names_come_first_and_plain_ones_serve() {
        let asked = std::cell::RefCell::new(Vec::new());
        let find = |name: &CStr| {
            asked.borrow_mut().push(name.to_str().unwrap().to_owned());
            if name == c"PMPI_Init_thread" { std::ptr::null_mut() } else { address() }
        };
        // SAFETY: nothing that is bound here is called.
        assert!(unsafe { Functions::bind(find) }.is_ok());
        assert_eq!(asked.borrow()[..3], ["PMPI_Init_thread", "MPI_Init_thread", "PMPI_Initialized"]);
    }

    #[test]
    fn a_missing_function_is_named_and_an_optional_one_is_none() {
        let without = |missing: &'static str| {
            // SAFETY: nothing that is bound here is called.
            unsafe {
                Functions::bind(|name: &CStr| {
                    if name.to_str().unwrap().ends_with(missing) { std::ptr::null_mut() } else { address() }
                })
            }
        };
        assert_eq!(without("MPI_Isend").unwrap_err(), "MPI_Isend");
        assert!(without("MPI_Bcast_c").unwrap().bcast_c.is_none());
    }
}

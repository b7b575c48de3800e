//! What each collective asks for, read from the arguments of MPI's function.
//!
//! A rank looks at its own arguments only, and comes to what MPI guarantees to be the same on every rank.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use allhands::Error;
use allhands::kernels::Type;
use allhands::raw::{Amount, RawCall, RawPlan};
use allhands_mpi::{Handle, Mpi};
use allhands_schedule::Collective;

use crate::comms::{Group, Member};
use crate::failure::{REFUSED, Unserved, passed};
use crate::memory::{Datatype, Numbers, Region, TOO_LARGE, TOO_LARGE_TEXT, count, counts};
use crate::operations::{Called, Reduction};
use crate::said::{Said, list};
use crate::session::Session;

/// A call that is to be served.
pub(crate) struct Task {
    pub(crate) call: RawCall,
    /// `None`: in place.
    pub(crate) input: Option<Region>,
    pub(crate) output: Region,
    /// Whether the output only holds what others get.
    gives: bool,
    /// The bytes that come from each rank, where that is not the call's to say.
    expected: Vec<usize>,
    /// Bytes of a block, or of the vector, or of all blocks together where they differ.
    pub(crate) bytes: usize,
    /// What combines elements, where it is no kernel of ours.
    called: Option<Arc<Called>>,
}

type Outcome = Result<Task, Unserved>;

impl Task {
    /// Completes an alltoallv with what the others have for this rank, and it for them. Collective.
    pub(crate) fn agree(&mut self, session: &Session, me: usize, group: &mut Group) -> Result<(), Unserved> {
        let Amount::Listed(given) = &self.call.amount else { return Ok(()) };
        let all = group.counts_of_all(session, given)?;
        let ranks = given.len();
        for (other, &expected) in self.expected.iter().enumerate() {
            let came = all[other * ranks + me];
            if came != expected {
                return Err(Error::Size { rank: me, other, expected, came }.into());
            }
        }
        self.call.amount = Amount::Listed(all);
        Ok(())
    }

    /// Runs it: on the program's memory if the data lie there one after the other, else on copies.
    ///
    /// # Safety
    /// The program's memory is as it says.
    #[inline]
    pub(crate) unsafe fn run(&self, mpi: &Mpi, plan: &mut RawPlan) -> Result<(), Unserved> {
        if let (Some(input), None) = (&self.input, &self.called)
            && let (Some(source), Some(target)) = (input.direct(), self.output.direct())
        {
            // SAFETY: the caller's promise.
            return unsafe { plan.run(source, target) }.map_err(Unserved::from);
        }
        // SAFETY: the caller's promise.
        unsafe {
            let staged = self.stage(mpi)?;
            self.combine_by(plan);
            match &self.input {
                None => plan.run_in_place(staged.target)?,
                Some(_) => plan.run(staged.source, staged.target)?,
            }
            self.unstage(mpi, &staged)
        }
    }

    /// Tells the plan what combines elements, if no kernel of ours does.
    fn combine_by(&self, plan: &mut RawPlan) {
        if let Some(called) = &self.called {
            called.serve(plan);
        }
    }

    /// What outlasts the call must not have an operation that the program may free before: MPI gives no way to keep one.
    pub(crate) fn outlasting(self) -> Result<Task, Unserved> {
        match self.called {
            None => Ok(self),
            Some(_) => Err(passed("an operation that no kernel of ours has, in a call that returns before its end")),
        }
    }

    /// The memory that a run works on, with the input in it.
    ///
    /// # Safety
    /// The program's memory is as it says.
    pub(crate) unsafe fn stage(&self, mpi: &Mpi) -> Result<Staged, Unserved> {
        let Task { input, output, .. } = self;
        let room = |region: &Region| match region.direct() {
            Some(_) => Vec::new(),
            None => vec![0u128; region.bytes().div_ceil(16)],
        };
        let mut staged = Staged { to: room(output), ..Staged::default() };
        staged.target = output.direct().unwrap_or(staged.to.as_mut_ptr().cast());
        // SAFETY: the caller's promise; copies have room for the data.
        unsafe {
            match input {
                None if output.direct().is_none() => output.pack(mpi, staged.target)?,
                None => {}
                Some(input) => {
                    staged.from = room(input);
                    let source = input.direct().unwrap_or(staged.from.as_mut_ptr().cast());
                    staged.source = source;
                    if input.direct().is_none() {
                        input.pack(mpi, source)?;
                    }
                }
            }
        }
        Ok(staged)
    }

    /// Begins a run that is through when the plan says so.
    ///
    /// # Safety
    /// The program's memory is as it says, and stays with what is staged until then.
    pub(crate) unsafe fn start(&self, staged: &Staged, plan: &mut RawPlan) -> Result<(), Unserved> {
        self.combine_by(plan);
        // SAFETY: the caller's promise.
        unsafe {
            match &self.input {
                None => plan.start_in_place(staged.target)?,
                Some(_) => plan.start(staged.source, staged.target)?,
            }
        }
        Ok(())
    }

    /// Brings the result of a run to where the program wants it.
    ///
    /// # Safety
    /// As above.
    pub(crate) unsafe fn unstage(&self, mpi: &Mpi, staged: &Staged) -> Result<(), Unserved> {
        if let Some(called) = &self.called {
            called.outcome()?;
        }
        if self.output.direct().is_none() && !self.gives {
            // SAFETY: the caller's promise.
            unsafe { self.output.unpack(mpi, staged.target)? };
        }
        Ok(())
    }

    /// Keeps what the program may free before the run is through.
    pub(crate) fn hold(&mut self, mpi: &'static Mpi) -> Result<(), Unserved> {
        self.output.hold(mpi)?;
        self.input.as_mut().map_or(Ok(()), |input| input.hold(mpi))
    }
}

/// The memory that a run works on: the program's, or copies.
pub(crate) struct Staged {
    source: *const u8,
    target: *mut u8,
    from: Vec<u128>,
    to: Vec<u128>,
}

impl Default for Staged {
    fn default() -> Staged {
        Staged { source: null(), target: null_mut(), from: Vec::new(), to: Vec::new() }
    }
}

/// What a call is made with.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) session: &'a Session,
    pub(crate) member: &'a Member,
    /// Where to note what the arguments say, if somebody wants to know.
    pub(crate) said: Option<&'a Said>,
}

/// Memory that is read, as MPI's functions have it.
type Send = *const c_void;
/// Memory that is written.
type Receive = *mut c_void;

impl Caller<'_> {
    #[inline]
    fn in_place(&self, send: Send) -> bool {
        send == self.session.mpi.in_place().cast_const()
    }

    #[inline]
    fn datatype(&self, handle: Handle) -> Result<Datatype, Unserved> {
        Datatype::of(self.session, self.session.mpi.abi().handle(handle))
    }

    fn root(&self, root: i32) -> Result<usize, Unserved> {
        usize::try_from(root).ok().filter(|root| *root < self.member.size).ok_or(REFUSED)
    }

    pub(crate) fn barrier(&self) -> Outcome {
        let call = moved(Collective::Barrier, Amount::Each(0), 0);
        Ok(Task {
            call,
            input: Some(Region::none()),
            output: Region::none(),
            gives: false,
            expected: Vec::new(),
            bytes: 0,
            called: None,
        })
    }

    #[inline(always)]
    pub(crate) fn bcast(&self, buffer: Receive, number: i64, datatype: Handle, root: i32) -> Outcome {
        if let Some(said) = self.said {
            said.note(&[Some(format!("root {root}")), Some(self.bytes_said(number, datatype))]);
        }
        let root = self.root(root)?;
        let output = Region::new(buffer.cast(), count(number)?, self.datatype(datatype)?)?;
        let bytes = output.bytes();
        Ok(Task {
            call: moved(Collective::Bcast, Amount::Each(bytes), root),
            input: None,
            output,
            gives: root == self.member.rank,
            expected: Vec::new(),
            bytes,
            called: None,
        })
    }

    #[inline(always)]
    pub(crate) fn allgather(&self, send: (Send, i64, Handle), receive: (Receive, i64, Handle)) -> Outcome {
        self.regular(Collective::Allgather, send, receive, 1)
    }

    #[inline(always)]
    pub(crate) fn alltoall(&self, send: (Send, i64, Handle), receive: (Receive, i64, Handle)) -> Outcome {
        self.regular(Collective::Alltoall, send, receive, self.member.size)
    }

    /// Blocks of one size, of which the input has so many.
    #[inline(always)]
    fn regular(
        &self,
        collective: Collective,
        (send, sent, send_type): (Send, i64, Handle),
        (receive, received, receive_type): (Receive, i64, Handle),
        blocks: usize,
    ) -> Outcome {
        if let Some(said) = self.said {
            let gets = self.bytes_said(received, receive_type);
            let gives = (!self.in_place(send)).then(|| self.bytes_said(sent, send_type));
            said.note(&[gives.filter(|gives| *gives != gets).map(|gives| format!("sends {gives}")), Some(gets)]);
        }
        let received = count(received)?;
        let datatype = self.datatype(receive_type)?;
        let bytes = datatype.bytes(received)?;
        let all = received.checked_mul(self.member.size).ok_or(TOO_LARGE)?;
        let output = Region::new(receive.cast(), all, datatype)?;
        let mut input = None;
        if !self.in_place(send) {
            let (sent, datatype) = (count(sent)?, self.datatype(send_type)?);
            if datatype.bytes(sent)? != bytes {
                return Err(REFUSED);
            }
            let all = sent.checked_mul(blocks).ok_or(TOO_LARGE)?;
            input = Some(Region::new(send.cast_mut().cast(), all, datatype)?);
        }
        apart(Task {
            call: moved(collective, Amount::Each(bytes), 0),
            input,
            output,
            gives: false,
            expected: Vec::new(),
            bytes,
            called: None,
        })
    }

    /// # Safety
    /// The arrays have a number for each rank.
    pub(crate) unsafe fn allgatherv(
        &self,
        (send, sent, send_type): (Send, i64, Handle),
        receive: Receive,
        numbers: Numbers,
        places: Numbers,
        receive_type: Handle,
    ) -> Outcome {
        let Member { rank, size, .. } = *self.member;
        if let Some(said) = self.said {
            // SAFETY: the caller's promise.
            let each = unsafe { self.each_said(numbers, receive_type) };
            let mine = each.as_ref().map(|each| format!("{} bytes", each[rank]));
            let gives = (!self.in_place(send)).then(|| self.bytes_said(sent, send_type));
            let gives = gives.filter(|gives| Some(gives) != mine.as_ref()).map(|gives| format!("sends {gives}"));
            said.note(&[gives, each.map(|each| format!("{} bytes", list(&each)))]);
        }
        let datatype = self.datatype(receive_type)?;
        // SAFETY: the caller's promise.
        let (counts, places) = unsafe { (counts(numbers, size)?, places.read(size)?) };
        let output = Region::scattered(receive.cast(), &counts, &places, datatype)?;
        let blocks = counts.iter().map(|count| datatype.bytes(*count)).collect::<Result<Vec<_>, _>>()?;
        let mut input = None;
        if !self.in_place(send) {
            let region = Region::new(send.cast_mut().cast(), count(sent)?, self.datatype(send_type)?)?;
            if region.bytes() != blocks[rank] {
                return Err(REFUSED);
            }
            input = Some(region);
        }
        let bytes = output.bytes();
        apart(Task {
            call: moved(Collective::Allgatherv, Amount::Listed(blocks), 0),
            input,
            output,
            gives: false,
            expected: Vec::new(),
            bytes,
            called: None,
        })
    }

    /// Ranks know their own counts only: they have to tell each other before there is a plan, which is not worth it for one call.
    ///
    /// # Safety
    /// The arrays have a number for each rank.
    pub(crate) unsafe fn alltoallv(
        &self,
        send: (Send, Numbers, Numbers, Handle),
        receive: (Receive, Numbers, Numbers, Handle),
    ) -> Outcome {
        if let Some(said) = self.said {
            // SAFETY: the caller's promise.
            let expected = unsafe { self.each_said(receive.1, receive.3) };
            // SAFETY: the same.
            let given = match self.in_place(send.0) {
                true => expected.clone(),
                false => unsafe { self.each_said(send.1, send.3) },
            };
            let unsigned = |each: Vec<i128>| each.into_iter().map(|bytes| u64::try_from(bytes).ok()).collect();
            let both = given.and_then(unsigned).zip(expected.and_then(unsigned));
            said.note(&[both.is_none().then(|| "counts that MPI refuses".into())]);
            let _ = both.map(|both| said.exchanged.set(both));
        }
        if self.session.settings.forced(Collective::Alltoallv).is_none_or(|algorithm| algorithm == "mpi") {
            return Err(passed("counts that only some ranks know"));
        }
        // SAFETY: the caller's promise.
        unsafe { self.planned_alltoallv(send, receive) }
    }

    /// The same for many calls.
    ///
    /// # Safety
    /// As for [`alltoallv`](Caller::alltoallv).
    pub(crate) unsafe fn planned_alltoallv(
        &self,
        (send, sent, from, send_type): (Send, Numbers, Numbers, Handle),
        (receive, received, to, receive_type): (Receive, Numbers, Numbers, Handle),
    ) -> Outcome {
        let size = self.member.size;
        // SAFETY: the caller's promise.
        let part = |at: *mut u8, numbers: Numbers, places: Numbers, handle: Handle| unsafe {
            let datatype = self.datatype(handle)?;
            let counts = counts(numbers, size)?;
            let region = Region::scattered(at, &counts, &places.read(size)?, datatype).map_err(alone)?;
            Ok::<_, Unserved>((region, counts.iter().map(|count| count * datatype.size).collect::<Vec<_>>()))
        };
        let (output, expected) = part(receive.cast(), received, to, receive_type)?;
        let (input, given) = match self.in_place(send) {
            true => (None, expected.clone()),
            false => {
                part(send.cast_mut().cast(), sent, from, send_type).map(|(region, given)| (Some(region), given))?
            }
        };
        let (call, bytes) = (moved(Collective::Alltoallv, Amount::Listed(given), 0), output.bytes());
        apart(Task { call, input, output, gives: false, expected, bytes, called: None })
    }

    #[inline(always)]
    pub(crate) fn allreduce(&self, send: Send, receive: Receive, number: i64, datatype: Handle, op: Handle) -> Outcome {
        self.say_reduction(None, || number.to_string(), datatype, op);
        let wanted = Wanted { collective: Collective::Allreduce, amount: Amount::Each(count(number)?), root: 0 };
        self.reduction(wanted, send, receive, (datatype, op))
    }

    pub(crate) fn reduce(
        &self,
        send: Send,
        receive: Receive,
        number: i64,
        datatype: Handle,
        op: Handle,
        root: i32,
    ) -> Outcome {
        self.say_reduction(Some(root), || number.to_string(), datatype, op);
        let (root, amount) = (self.root(root)?, Amount::Each(count(number)?));
        self.reduction(Wanted { collective: Collective::Reduce, amount, root }, send, receive, (datatype, op))
    }

    pub(crate) fn reduce_scatter_block(
        &self,
        send: Send,
        receive: Receive,
        number: i64,
        datatype: Handle,
        op: Handle,
    ) -> Outcome {
        self.say_reduction(None, || number.to_string(), datatype, op);
        let amount = Amount::Each(count(number)?);
        self.reduction(
            Wanted { collective: Collective::ReduceScatterBlock, amount, root: 0 },
            send,
            receive,
            (datatype, op),
        )
    }

    /// # Safety
    /// There is a count for each rank.
    pub(crate) unsafe fn reduce_scatter(
        &self,
        send: Send,
        receive: Receive,
        numbers: Numbers,
        datatype: Handle,
        op: Handle,
    ) -> Outcome {
        self.say_reduction(
            None,
            // SAFETY: the caller's promise.
            || match unsafe { numbers.read(self.member.size) } {
                Ok(counts) => list(&counts.into_iter().map(i128::from).collect::<Vec<_>>()),
                Err(_) => "no counts".into(),
            },
            datatype,
            op,
        );
        // SAFETY: the caller's promise.
        let amount = Amount::Listed(unsafe { counts(numbers, self.member.size)? });
        self.reduction(Wanted { collective: Collective::ReduceScatter, amount, root: 0 }, send, receive, (datatype, op))
    }

    fn say_reduction(&self, root: Option<i32>, amount: impl Fn() -> String, datatype: Handle, op: Handle) {
        if let Some(said) = self.said {
            let amount = format!("{} x {}", amount(), self.element_said(datatype));
            said.note(&[root.map(|root| format!("root {root}")), Some(amount), Some(self.operation_said(op))]);
        }
    }

    #[inline(always)]
    fn reduction(
        &self,
        Wanted { collective, amount, root }: Wanted,
        send: Send,
        receive: Receive,
        (datatype, op): (Handle, Handle),
    ) -> Outcome {
        let abi = self.session.mpi.abi();
        let Reduction { datatype, align, element, operation, called } =
            Reduction::of(self.session, self.member.handle, abi.handle(datatype), abi.handle(op))?;
        let Member { rank, size, .. } = *self.member;
        let (input, output) = lengths(collective, &amount, rank, root, size).ok_or(TOO_LARGE)?;
        let bytes = datatype.bytes(input)?;
        let in_place = self.in_place(send);
        let region = |at: *mut u8, count| Region::new(at, count, datatype).map(|region| region.aligned(align));
        // In place the output's memory holds the input first, which may be longer.
        let to = if output == 0 && !in_place { null_mut() } else { receive.cast() };
        let output = region(to, if in_place { input.max(output) } else { output })?;
        let input = if in_place { None } else { Some(region(send.cast_mut().cast(), input)?) };
        apart(Task {
            call: RawCall { collective, amount, element, operation: Some(operation), root },
            input,
            output,
            gives: false,
            expected: Vec::new(),
            bytes,
            called,
        })
    }
}

struct Wanted {
    collective: Collective,
    amount: Amount,
    root: usize,
}

/// What is moved as it is.
fn moved(collective: Collective, amount: Amount, root: usize) -> RawCall {
    RawCall { collective, amount, element: Type::U8, operation: None, root }
}

/// Elements of this rank's input and output of a reduction; `None` if they cannot be counted.
#[inline]
fn lengths(collective: Collective, amount: &Amount, rank: usize, root: usize, size: usize) -> Option<(usize, usize)> {
    Some(match (collective, amount) {
        (Collective::Reduce, Amount::Each(count)) if rank != root => (*count, 0),
        (Collective::ReduceScatterBlock, Amount::Each(count)) => (count.checked_mul(size)?, *count),
        (_, Amount::Each(count)) => (*count, *count),
        (_, Amount::Listed(counts)) => {
            (counts.iter().try_fold(0usize, |sum, count| sum.checked_add(*count))?, counts[rank])
        }
    })
}

/// What this rank alone knows is no reason to call the MPI's own function: the others would not.
fn alone(unserved: Unserved) -> Unserved {
    match unserved {
        Unserved::Passed(reason) if reason == TOO_LARGE_TEXT => {
            let text = "an alltoallv of more than 1 GiB on one rank is not served; leave alltoallv to the MPI";
            Error::Operation(text.into()).into()
        }
        other => other,
    }
}

/// Buffers that begin at the same place are not in place, but wrong: some MPIs say so.
#[inline(always)]
fn apart(task: Task) -> Outcome {
    match &task.input {
        Some(input) if input.at() == task.output.at() && input.bytes() > 0 && task.output.bytes() > 0 => {
            Err(passed("an input that is the output"))
        }
        _ => Ok(task),
    }
}

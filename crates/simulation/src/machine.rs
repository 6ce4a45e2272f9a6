//! The clock and the random numbers of a simulated machine.
//!
//! The functions of the C library that read them are replaced in every program that contains this crate, as in
//! [madsim](https://docs.rs/madsim): the standard library and all crates then see virtual time, without knowing it. On threads that
//! are not simulated, the functions read the real clock and real random numbers.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_uint, c_void};
use std::time::Duration;

use fastrand::Rng;
use rustix::rand::GetRandomFlags;
use rustix::time::ClockId;
use tokio::time::Instant;

/// When every simulation begins, in seconds since 1970: 2027-01-15.
const BEGIN_S: u64 = 1_800_000_000;
/// The number of the clock of days and dates in the C library.
const CLOCK_REALTIME: c_int = 0;
/// The number of the clock that only rises.
const CLOCK_MONOTONIC: c_int = 1;

thread_local! {
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
    static AHEAD_MS: Cell<i64> = const { Cell::new(0) };
    static RANDOM: RefCell<Option<Rng>> = const { RefCell::new(None) };
}

/// Makes the random numbers of this thread depend on this seed only, before anything has used one.
pub fn seed(seed: u64) {
    fastrand::seed(seed);
    RANDOM.with(|random| *random.borrow_mut() = Some(Rng::with_seed(seed)));
}

/// Makes this thread read the virtual time of its runtime.
pub fn begin() {
    BEGAN.with(|began| began.set(Some(Instant::now())));
}

/// Sets the clock of the machine by this number of milliseconds; back if it is negative.
pub fn set_clock(by_ms: i64) {
    AHEAD_MS.with(|ahead| ahead.set(ahead.get() + by_ms));
}

/// Returns the virtual time since the begin.
#[must_use]
pub fn elapsed() -> Duration {
    virtual_elapsed().unwrap_or_default()
}

/// Returns the time since 1970 by a clock that was never set.
#[must_use]
pub fn true_time() -> Duration {
    Duration::from_secs(BEGIN_S) + elapsed()
}

/// Returns by how much the clock is ahead, in milliseconds.
#[must_use]
pub fn ahead_ms() -> i64 {
    AHEAD_MS.with(Cell::get)
}

/// Returns the virtual time since the begin; none if this thread is not simulated.
fn virtual_elapsed() -> Option<Duration> {
    // Removed during the call, because the runtime can read the clock itself.
    let began = BEGAN.try_with(Cell::take).ok().flatten()?;
    let elapsed = began.elapsed();
    BEGAN.with(|kept| kept.set(Some(began)));
    Some(elapsed)
}

const _: () = assert!(size_of::<usize>() == 8, "only 64-bit systems have this layout of a time");

/// A time, as the C library of 64-bit systems writes it.
#[repr(C)]
pub struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

impl Timespec {
    fn now(clock: c_int) -> Self {
        let Some(elapsed) = virtual_elapsed() else {
            let clock = if clock == CLOCK_REALTIME { ClockId::Realtime } else { ClockId::Monotonic };
            let now = rustix::time::clock_gettime(clock);
            return Self { seconds: now.tv_sec, nanoseconds: now.tv_nsec };
        };
        let since = Duration::from_secs(BEGIN_S) + elapsed;
        let ahead_ms = if clock == CLOCK_REALTIME { AHEAD_MS.with(Cell::get) } else { 0 };
        let ahead = Duration::from_millis(ahead_ms.unsigned_abs());
        let since = if ahead_ms < 0 { since.saturating_sub(ahead) } else { since + ahead };
        Self { seconds: since.as_secs().cast_signed(), nanoseconds: i64::from(since.subsec_nanos()) }
    }
}

/// Reads a clock. All clocks but CLOCK_REALTIME return the same monotonic time. rustix makes system calls itself, so it does not call this function.
///
/// # Safety
/// `time` must be valid for a write.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "replaces a function of the C library")]
pub unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int {
    let now = Timespec::now(if clock == CLOCK_REALTIME { clock } else { CLOCK_MONOTONIC });
    // SAFETY: the caller passes a valid address, as the C library demands.
    unsafe { time.write(now) };
    0
}

/// Fills a buffer with random numbers, from which the standard library seeds its hash tables.
///
/// # Safety
/// `buffer` must be valid for `length` written bytes.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "replaces a function of the C library")]
pub unsafe extern "C" fn getrandom(buffer: *mut c_void, length: usize, flags: c_uint) -> isize {
    if length == 0 {
        return 0;
    }
    // SAFETY: the caller passes a valid address and length, as the C library demands. The memory is initialized before a slice of it exists.
    let buffer = unsafe {
        buffer.cast::<u8>().write_bytes(0, length);
        std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length)
    };
    let is_seeded = RANDOM.try_with(|random| {
        let mut random = random.borrow_mut();
        random.as_mut().map(|random| random.fill(buffer)).is_some()
    });
    if is_seeded.unwrap_or(false) {
        return length.cast_signed();
    }
    match rustix::rand::getrandom(&mut *buffer, GetRandomFlags::from_bits_retain(flags)) {
        Ok(filled) => filled.cast_signed(),
        Err(_) => -1,
    }
}

//! Duration of a context switch between two processes.
//!
//! A byte goes round: we write it to a child that echoes it, and read it back. On one CPU each round is two switches
//! and two writes and reads on either side; the same byte through a pipe of our own costs a write and a read
//! and no switch. (After the pipe test of McVoy and Staelin, "lmbench: portable tools for performance analysis",
//! USENIX 1996.)

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

const SAMPLES: usize = 21;
const ROUNDS: u32 = 2000;

pub(crate) const HOW: &str = "a byte echoed by another process (`cat`) on the same CPU, less the reads and writes, by the two \
    switches of a round; a process is taken for a vCPU";

/// Time of one switch, ns, several times. Our thread must be pinned.
///
/// # Errors
/// The child cannot be started, or it does not echo.
pub(crate) fn samples_ns() -> io::Result<Vec<i64>> {
    let mut child = Echo(Command::new("cat").arg("-u").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
    let (Some(mut to), Some(mut from)) = (child.0.stdin.take(), child.0.stdout.take()) else {
        return Err(io::Error::other("the child has no pipes"));
    };
    let (mut own_from, mut own_to) = io::pipe()?;
    rounds_ns(&mut to, &mut from)?;
    (0..SAMPLES)
        .map(|_| {
            let echoed = rounds_ns(&mut to, &mut from)?;
            let alone = rounds_ns(&mut own_to, &mut own_from)?;
            Ok((echoed - 2 * alone).max(0) / 2)
        })
        .collect()
}

/// The mean time of a byte through these, ns.
fn rounds_ns(to: &mut impl Write, from: &mut impl Read) -> io::Result<i64> {
    let mut byte = [0];
    let start = Instant::now();
    for _ in 0..ROUNDS {
        to.write_all(&byte)?;
        from.read_exact(&mut byte)?;
    }
    Ok((start.elapsed().as_nanos() / u128::from(ROUNDS)) as i64)
}

/// A child that is gone when we are done, however that is.
struct Echo(Child);

impl Drop for Echo {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

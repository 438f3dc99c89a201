//! Every way to hold a lease, in every situation that a service meets.
//!
//! A capability that was tried alone has failed beside another one.
//! So each [surface](Surface) goes through each [situation](Situation) here, in processes of their own on real servers:
//! one process has the lease and works, another one waits in line for it, has it next, and ends by itself; and a third
//! finds it free.
//! No two of them work at once.
//!
//! A new surface is a row, and a new situation is a column.
#![expect(clippy::print_stdout, reason = "the times of each cell")]

mod attempt;
mod journal;
mod situation;
mod surface;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

use self::{situation::Situation, surface::Role};

fn main() -> ExitCode {
    if let Some(role) = Role::of_this_process() {
        return role.play();
    }
    let mut arguments = Arguments::from_args();
    // They wait for time to pass, nearly all of the time.
    arguments.test_threads.get_or_insert(SITUATIONS_AT_ONCE);
    let trial = |situation: &Situation| {
        let situation = *situation;
        Trial::test(situation.name(), move || situation.try_all())
    };
    let trials = Situation::ALL.iter().map(trial).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

const SITUATIONS_AT_ONCE: usize = 3;

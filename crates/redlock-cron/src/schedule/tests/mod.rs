//! Schedules beside what their patterns, their zones and the clocks there say.

mod clock_changes;
mod missing_days;
mod patterns;
mod properties;

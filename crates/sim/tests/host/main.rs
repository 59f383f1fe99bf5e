//! Laws of the host before a drive: they hold whatever the drive, the queue and the elevator.

mod arms;
mod durability;
mod elevators;
mod guard;
mod layout;
mod page_cache;
mod queue;
mod support;

//! Laws of rotating disks, judged from the parameters in the drive files alone: no test here repeats the model's way of
//! computing a time. Each is judged over the shipped drives, over small made-up ones, or both.

mod accounting;
mod activity;
mod arrays;
mod broken;
mod cache;
mod cuts;
mod faults;
mod flushes;
mod guard;
mod history;
mod limits;
mod links;
mod media;
mod media_cache;
mod orders;
mod overtaking;
mod processor;
mod queueing;
mod rotation;
mod seek;
mod shingled;
mod streams;
mod support;
mod tags;
mod time;
mod transfer;
mod two_arms;
mod unbuffered;
mod writes;
mod zones;

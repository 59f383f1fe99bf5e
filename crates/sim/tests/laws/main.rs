//! Laws of rotating disks. The expected times follow from the parameters in the drive files alone: no test here repeats the way in which the
//! model computes a time. Each law is tested on the shipped drives, on small invented ones, or on both.

mod accounting;
mod activity;
mod array_deaths;
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
mod queued_streams;
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

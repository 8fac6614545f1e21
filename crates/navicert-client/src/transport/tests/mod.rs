//! The transport against real servers on loopback: what they saw is what is judged.

mod basics;
mod files;
mod head_start;
mod proxies;
mod refusals;
mod rotations;
mod support;

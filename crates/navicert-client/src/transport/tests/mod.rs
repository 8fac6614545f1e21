//! The transport against real servers on loopback; the tests check what the servers received.

mod basics;
mod files;
mod preconnect;
mod proxies;
mod rejections;
mod rotations;
mod support;

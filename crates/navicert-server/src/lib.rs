//! Sockets, HTTP and everything that runs for long on the side that decides who a caller is. Deciding it is
//! `navicert-authn`'s business.
//!
//! ```text
//! navicert_authn::jwks::Keeper ──Fetch──▶ fetch::HttpFetch ──▶ navicert_client::transport (TLS, proxies, pools)
//! ```

pub mod fetch;

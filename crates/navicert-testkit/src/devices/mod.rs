//! Devices that keep a key: a SoftHSM token, and a TPM without the chip, each in a directory of its own.

pub mod softhsm;
pub mod tpm;

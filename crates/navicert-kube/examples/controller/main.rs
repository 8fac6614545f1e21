//! A controller that goes on while its credentials expire, are revoked and rotate. It counts the entries of ConfigMaps with
//! the label `navicert.example/count`:
//!
//! `cargo run -p navicert-kube --example controller -- ~/.kube/config`

mod counting;

use std::error::Error;
use std::path::PathBuf;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "a program for people")]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).map(PathBuf::from).ok_or("a kubeconfig is needed")?;
    let stop = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    let tell = |outcome| match outcome {
        Ok(name) => println!("{name}"),
        // The controller tries again by itself; what is told here is never a secret.
        Err(error) => println!("# {error}"),
    };
    counting::run(counting::client(&path)?, stop, tell).await;
    Ok(())
}

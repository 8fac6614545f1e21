//! A controller that keeps working while its credentials expire, are revoked and rotate. It counts the entries of ConfigMaps
//! with the label `navicert.example/count`:
//!
//! `cargo run -p navicert-kube --example controller -- ~/.kube/config`

mod counting;

use std::error::Error;
use std::path::PathBuf;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "prints its result")]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).map(PathBuf::from).ok_or("missing argument: kubeconfig")?;
    let stop = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    let report = |outcome| match outcome {
        Ok(name) => println!("{name}"),
        // The controller retries by itself; the error contains no secret.
        Err(error) => println!("# {error}"),
    };
    counting::run(counting::client(&path)?, stop, report).await;
    Ok(())
}

//! What keys that stay in their device add: to a handshake, and to a signature by a signer that stays.

use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use navicert_signer::pin::StaticPin;
use navicert_signer::pkcs11::{self, KeySelection, Pkcs11KeyStore, bare};
use navicert_signer::remote::wire::sample_message;
use navicert_signer::remote::{KeyStore, SignerServer, SocketSigner};
use navicert_signer::tls::ClientCertificate;
use navicert_testkit::{Ca, Identity, KeyKind, SoftHsm};
use navicert_types::Secret;
use navicert_types::external_signer::{SignerConfiguration, v1};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};
use rustls_pki_types::{CertificateDer, ServerName};

use crate::needs::Need;
use crate::race::{Contest, Contestant, Fault, Race, Shared};

const TOKEN: &str = "bench";
const PIN: &str = "271828";
const URI: &str = "pkcs11:token=bench;id=%01";
/// Where the process that has a token finds it, and its authority.
const MODULE: &str = "NAVICERT_BENCH_MODULE";
const FOLDER: &str = "NAVICERT_BENCH_FOLDER";
/// What makes tokens and keys.
const NEEDS: [Need; 2] = [Need::Installed("softhsm2-util"), Need::Installed("pkcs11-tool")];

/// A module finds its tokens through the environment, so the bench runs itself once more with a token of its own.
/// `None` in that process, and where no row needs a token or SoftHSM is not installed.
pub(crate) fn with_a_token(races: &[Race]) -> Result<Option<ExitCode>, Fault> {
    let is_wanted = |race: &Race| race.row.needs == NEEDS && race.row.missing().is_none();
    if variable(MODULE).is_some() || !races.iter().any(is_wanted) {
        return Ok(None);
    }
    let hsm = SoftHsm::new(TOKEN, PIN);
    let folder = tempfile::tempdir()?;
    let ca = Ca::new("bench");
    let key = hsm.generate(KeyKind::EcP256, "01", "bench");
    let chain = ca.client("ann").issue_for(&key.public_key);
    hsm.import_certificate(chain.first().ok_or("no certificate was issued")?, "01", "bench");
    std::fs::write(folder.path().join("ca.der"), ca.der())?;
    #[expect(clippy::disallowed_methods, reason = "the bench itself, with another environment")]
    let status = std::process::Command::new(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .envs(hsm.variables())
        .env(MODULE, hsm.module())
        .env(FOLDER, folder.path())
        .status()?;
    Ok(Some(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2))))
}

#[expect(clippy::disallowed_methods, reason = "how the bench tells itself where its token is")]
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

pub(crate) fn races() -> Vec<Race> {
    let handshake = "signer: handshake with a SoftHSM key / with a software key, plus one bare C_Sign";
    let stays = "signer: signature by a signer that stays, over its socket / one bare C_Sign";
    let setup = Shared::new(Setup::new);
    let race = |what, limit, contest: fn(&Rc<Setup>) -> Result<Contest, Fault>| {
        let setup = setup.clone();
        Race::new(what, limit, move || contest(&setup.get()?)).needs(&NEEDS)
    };
    vec![
        race(handshake, 1.5, |setup| {
            Ok(Contest::Time { ours: hardware_handshake(setup)?, reference: software_handshake(setup)? })
        }),
        race(stays, 2.0, |setup| {
            Ok(Contest::Time { ours: over_the_socket(setup)?, reference: bare_signature(setup)? })
        })
        .on_one_processor(),
    ]
}

struct Setup {
    selection: KeySelection,
    folder: PathBuf,
    ca: Ca,
    server: Arc<ServerConfig>,
    software: Identity,
}

impl Setup {
    fn new() -> Result<Self, Fault> {
        let module = variable(MODULE).ok_or("missing module of a token")?;
        let folder = variable(FOLDER).ok_or("missing folder of a token")?;
        let ca = Ca::new("servers");
        let software = ca.client("ann").issue();
        let mut clients = rustls::RootCertStore::empty();
        clients.add(CertificateDer::from(std::fs::read(folder.join("ca.der"))?))?;
        clients.add(ca.der().clone())?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(clients), Arc::clone(&provider)).build()?;
        let issued = ca.server().issue();
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier)
            .with_single_cert(issued.chain().to_vec(), issued.rustls_key())?;
        // Tickets are not what is raced.
        server.send_tls13_tickets = 0;
        let selection = KeySelection { module, uri: URI.parse()?, pin: None };
        Ok(Setup { selection, folder, ca, server: Arc::new(server), software })
    }

    fn bare(&self) -> Result<impl FnMut() -> Result<Vec<u8>, String> + use<>, Fault> {
        Ok(bare::signer(&self.selection.module, TOKEN, &[1], PIN)?)
    }

    fn client(&self) -> Result<rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>, Fault> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        Ok(builder.with_root_certificates(self.ca.root_store()))
    }
}

fn hardware_handshake(setup: &Rc<Setup>) -> Result<Contestant, Fault> {
    let (identity, key) = pkcs11::open(&setup.selection, Arc::new(StaticPin(Secret::new(PIN.to_owned()))))?;
    key.log_in()?;
    let resolver = Arc::new(ClientCertificate::new(Arc::new(identity)));
    let mut config = setup.client()?.with_client_cert_resolver(resolver);
    config.resumption = rustls::client::Resumption::disabled();
    let (setup, config) = (Rc::clone(setup), Arc::new(config));
    Ok(Box::new(move || shake_hands(&config, &setup.server)))
}

fn software_handshake(setup: &Rc<Setup>) -> Result<Contestant, Fault> {
    let (chain, key) = (setup.software.chain().to_vec(), setup.software.rustls_key());
    let mut config = setup.client()?.with_client_auth_cert(chain, key)?;
    config.resumption = rustls::client::Resumption::disabled();
    let mut bare = setup.bare()?;
    let (setup, config) = (Rc::clone(setup), Arc::new(config));
    Ok(Box::new(move || {
        shake_hands(&config, &setup.server)?;
        std::hint::black_box(bare()?);
        Ok(())
    }))
}

/// From nothing to two sides that agree, without a socket.
fn shake_hands(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> Result<(), Fault> {
    let mut client = ClientConnection::new(Arc::clone(client), ServerName::try_from("localhost")?)?;
    let mut server = ServerConnection::new(Arc::clone(server))?;
    let mut bytes = Vec::with_capacity(8 << 10);
    while client.is_handshaking() || server.is_handshaking() {
        bytes.clear();
        client.write_tls(&mut bytes)?;
        server.read_tls(&mut bytes.as_slice())?;
        server.process_new_packets()?;
        bytes.clear();
        server.write_tls(&mut bytes)?;
        client.read_tls(&mut bytes.as_slice())?;
        client.process_new_packets()?;
    }
    match server.peer_certificates() {
        Some(_) => Ok(()),
        None => Err("the client showed no certificate".into()),
    }
}

fn over_the_socket(setup: &Rc<Setup>) -> Result<Contestant, Fault> {
    let choose: pkcs11::PinProviderFactory =
        Arc::new(|_, _| Ok(Arc::new(StaticPin(Secret::new(PIN.to_owned())))));
    let module = Some(setup.selection.module.clone());
    let ring: Arc<dyn KeyStore> =
        Arc::new(Pkcs11KeyStore::serving(vec![setup.selection.clone()], module, choose)?);
    let server = SignerServer::bind(&setup.folder.join("private/signer.sock"))?;
    let socket = SocketSigner::new(server.path().to_owned(), "bench");
    std::thread::spawn(move || server.serve(&ring));
    let configuration = SignerConfiguration([("uri".to_owned(), URI.to_owned())].into());
    let quiet: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(|_| {});
    Ok(Box::new(move || {
        let request = v1::Request::Sign(v1::SignRequest {
            configuration: configuration.clone(),
            scheme: "ecdsa_secp256r1_sha256".to_owned(),
            message: sample_message(1),
            ..v1::SignRequest::default()
        });
        match socket.request(&request, Duration::from_secs(10), &quiet)? {
            v1::Message::Signature { signature, .. } => {
                std::hint::black_box(signature);
                Ok(())
            }
            other => Err(format!("no signature but {other:?}").into()),
        }
    }))
}

fn bare_signature(setup: &Rc<Setup>) -> Result<Contestant, Fault> {
    let mut bare = setup.bare()?;
    Ok(Box::new(move || {
        std::hint::black_box(bare()?);
        Ok(())
    }))
}

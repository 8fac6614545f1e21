//! The Secret Service of the desktop session, over D-Bus: GNOME Keyring, KWallet, KeePassXC. The key is sent without the
//! protocol's own encryption: the session's bus is a socket that only this user can open.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use futures_util::StreamExt as _;
use navicert_plugin::Environment;
use navicert_types::redact;
use serde::Serialize;
use zbus::message::Type as MessageType;
use zbus::zvariant::{DynamicDeserialize, DynamicType, ObjectPath, OwnedObjectPath, OwnedValue, Value};
use zbus::{Connection, MatchRule, MessageStream, connection};
use zeroize::Zeroizing;

use super::{SealKey, Unlock};

/// The service's name on the bus, and its object.
const SERVICE: (&str, &str) = ("org.freedesktop.secrets", "/org/freedesktop/secrets");
/// The prefix of its interfaces.
const INTERFACE: &str = "org.freedesktop.Secret";
/// An item: the account that finds it, and its name for people.
type ItemName = (&'static str, &'static str);
/// The item with the key.
const KEY_ITEM: ItemName = ("login", "navicert login");
/// The item that `probe` stores and deletes.
const PROBE_ITEM: ItemName = ("login-probe", "navicert login (test)");
/// No object: no prompt is needed.
const NO_OBJECT: &str = "/";
/// Limit for the keyring, and for the person who unlocks it.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// Limit for a probe, which asks no person.
const PROBE_LIMIT: Duration = Duration::from_secs(3);

/// Why the keyring cannot be used.
type Failure = String;
/// A secret on the bus: session, parameters, value, content type.
type WireSecret = (OwnedObjectPath, Vec<u8>, Vec<u8>, String);

/// The key; made if `is_made` and there is none.
pub(super) fn key(
    environment: &Environment,
    unlock: Unlock,
    is_made: bool,
) -> Result<Option<SealKey>, Failure> {
    let address = bus_address(environment)?;
    on_own_thread(TIME_LIMIT, async move {
        let service = SecretService::connect(&address, unlock).await?;
        if let Some(item) = service.find_item(KEY_ITEM).await? {
            return service.read(&item).await.map(Some);
        }
        if !is_made {
            return Ok(None);
        }
        let key = new_key()?;
        service.create(KEY_ITEM, &key).await?;
        Ok(Some(key))
    })
}

/// Stores, reads and deletes an item, without asking the person.
// L420
pub(super) fn probe(environment: &Environment) -> Result<(), Failure> {
    let address = bus_address(environment)?;
    on_own_thread(PROBE_LIMIT, async move {
        let service = SecretService::connect(&address, Unlock::Never).await?;
        let key = new_key()?;
        service.create(PROBE_ITEM, &key).await?;
        let lost = || "it does not find what it has stored".to_owned();
        let item = service.find_item(PROBE_ITEM).await?.ok_or_else(lost)?;
        let read = service.read(&item).await;
        service.delete(&item).await?;
        if read? == key { Ok(()) } else { Err("it does not return what it has stored".to_owned()) }
    })
}

fn new_key() -> Result<SealKey, Failure> {
    SealKey::generate().ok_or_else(|| "the system provides no random numbers".to_owned())
}

/// Removes the item, if there is one.
pub(super) fn remove_key(environment: &Environment) -> Result<(), Failure> {
    let address = bus_address(environment)?;
    on_own_thread(TIME_LIMIT, async move {
        let service = SecretService::connect(&address, Unlock::MayAsk).await?;
        let Some(item) = service.find_item(KEY_ITEM).await? else { return Ok(()) };
        service.delete(&item).await
    })
}

/// The address of the session's bus.
fn bus_address(environment: &Environment) -> Result<String, Failure> {
    let text = |name: &str| {
        let value = environment.variable(name).and_then(|value| value.to_str());
        value.filter(|value| !value.is_empty()).map(ToOwned::to_owned)
    };
    let in_runtime_folder = || text("XDG_RUNTIME_DIR").map(|folder| format!("unix:path={folder}/bus"));
    let missing = || "there is no desktop session (DBUS_SESSION_BUS_ADDRESS is not set)".to_owned();
    text("DBUS_SESSION_BUS_ADDRESS").or_else(in_runtime_folder).ok_or_else(missing)
}

/// Runs the exchange on a thread with its own runtime: the caller may be part of another one.
fn on_own_thread<T: Send>(
    limit: Duration,
    exchange: impl Future<Output = Result<T, Failure>> + Send,
) -> Result<T, Failure> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = crate::runtime::runtime().map_err(|error| error.to_string())?;
            runtime.block_on(async {
                let limited = tokio::time::timeout(limit, Box::pin(exchange)).await;
                limited.unwrap_or_else(|_| Err(format!("no answer within {} s", limit.as_secs())))
            })
        });
        thread.join().unwrap_or_else(|_| Err("the exchange with the keyring failed".to_owned()))
    })
}

struct SecretService {
    bus: Connection,
    session: OwnedObjectPath,
    unlock: Unlock,
}

impl SecretService {
    async fn connect(address: &str, unlock: Unlock) -> Result<Self, Failure> {
        let builder = connection::Builder::address(address).map_err(|error| failure(&error))?;
        let bus = builder.build().await.map_err(|error| failure(&error))?;
        let root = object(NO_OBJECT)?;
        let mut service = SecretService { bus, session: root, unlock };
        let body = ("plain", Value::from(""));
        let (_, session): (OwnedValue, OwnedObjectPath) =
            service.call(&object(SERVICE.1)?, "Service", "OpenSession", &body).await?;
        service.session = session;
        Ok(service)
    }

    /// Calls a method of the service.
    async fn call<B, R>(
        &self,
        path: &OwnedObjectPath,
        interface: &str,
        method: &str,
        body: &B,
    ) -> Result<R, Failure>
    where
        B: Serialize + DynamicType + Sync,
        R: for<'d> DynamicDeserialize<'d>,
    {
        let interface = format!("{INTERFACE}.{interface}");
        let sent = self
            .bus
            .call_method(Some(SERVICE.0), path.as_str(), Some(interface.as_str()), method, body)
            .await;
        let answer = sent.map_err(|error| failure(&error))?;
        answer.body().deserialize().map_err(|error| failure(&error))
    }

    /// The item, unlocked.
    async fn find_item(&self, (account, _): ItemName) -> Result<Option<OwnedObjectPath>, Failure> {
        let service = object(SERVICE.1)?;
        let attributes = attributes(account);
        let (unlocked, locked): (Vec<OwnedObjectPath>, Vec<OwnedObjectPath>) =
            self.call(&service, "Service", "SearchItems", &(attributes,)).await?;
        if let Some(item) = unlocked.into_iter().next() {
            return Ok(Some(item));
        }
        let Some(item) = locked.into_iter().next() else { return Ok(None) };
        self.unlock(&item).await?;
        Ok(Some(item))
    }

    /// Unlocks an item or a collection. The person is asked only if that is allowed.
    // L422
    async fn unlock(&self, object_path: &OwnedObjectPath) -> Result<(), Failure> {
        let service = object(SERVICE.1)?;
        let (unlocked, prompt): (Vec<OwnedObjectPath>, OwnedObjectPath) =
            self.call(&service, "Service", "Unlock", &(vec![object_path],)).await?;
        if !unlocked.is_empty() {
            return Ok(());
        }
        self.answer(&prompt).await
    }

    /// Lets the person answer a prompt of the keyring, if there is one.
    async fn answer(&self, prompt: &OwnedObjectPath) -> Result<(), Failure> {
        if prompt.as_str() == NO_OBJECT {
            return Ok(());
        }
        if self.unlock == Unlock::Never {
            return Err("it is locked, and you cannot be asked here".to_owned());
        }
        let rule = MatchRule::builder()
            .msg_type(MessageType::Signal)
            .path(prompt.as_str())
            .and_then(|rule| rule.interface(format!("{INTERFACE}.Prompt")))
            .and_then(|rule| rule.member("Completed"))
            .map_err(|error| failure(&error))?
            .build();
        let stream = MessageStream::for_match_rule(rule, &self.bus, None).await;
        let mut stream = stream.map_err(|error| failure(&error))?;
        let () = self.call(prompt, "Prompt", "Prompt", &("",)).await?;
        let lost = || "the connection to the keyring was lost".to_owned();
        let message = stream.next().await.ok_or_else(lost)?.map_err(|error| failure(&error))?;
        let body = message.body();
        let (is_dismissed, _): (bool, OwnedValue) = body.deserialize().map_err(|error| failure(&error))?;
        if is_dismissed { Err("its prompt was dismissed".to_owned()) } else { Ok(()) }
    }

    async fn read(&self, item: &OwnedObjectPath) -> Result<SealKey, Failure> {
        let secret: WireSecret = self.call(item, "Item", "GetSecret", &(&self.session,)).await?;
        let value = Zeroizing::new(secret.2);
        SealKey::from_bytes(&value)
            .ok_or_else(|| format!("its item `{}` is not a key; remove that item", KEY_ITEM.1))
    }

    async fn delete(&self, item: &OwnedObjectPath) -> Result<(), Failure> {
        let prompt: OwnedObjectPath = self.call(item, "Item", "Delete", &()).await?;
        self.answer(&prompt).await
    }

    async fn create(&self, (account, label): ItemName, key: &SealKey) -> Result<(), Failure> {
        let service = object(SERVICE.1)?;
        let collection: OwnedObjectPath = self.call(&service, "Service", "ReadAlias", &("default",)).await?;
        if collection.as_str() == NO_OBJECT {
            return Err("it has no default collection".to_owned());
        }
        self.unlock(&collection).await?;
        let properties = HashMap::from([
            ("org.freedesktop.Secret.Item.Label", Value::from(label)),
            ("org.freedesktop.Secret.Item.Attributes", Value::from(attributes(account))),
        ]);
        let secret = (&self.session, &[][..] as &[u8], key.expose(), "application/octet-stream");
        let (_, prompt): (OwnedObjectPath, OwnedObjectPath) =
            self.call(&collection, "Collection", "CreateItem", &(properties, secret, true)).await?;
        self.answer(&prompt).await
    }
}

/// What finds an item.
fn attributes(account: &'static str) -> HashMap<&'static str, &'static str> {
    HashMap::from([("service", "navicert"), ("account", account)])
}

fn object(path: &'static str) -> Result<OwnedObjectPath, Failure> {
    ObjectPath::try_from(path).map(Into::into).map_err(|error| redact::line(&error.to_string()).into_owned())
}

fn failure(error: &zbus::Error) -> Failure {
    redact::line(&error.to_string()).into_owned()
}

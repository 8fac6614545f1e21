use super::*;
use proptest::prelude::*;

#[test]
fn parses_every_attribute() {
    let uri: Pkcs11Uri =
        "PKCS11:token=The%20Token;manufacturer=m;serial=0001;model=x;library-manufacturer=lm;\
        library-description=ld;library-version=2.6;object=my%2fkey;type=private;id=%01%fF;slot-id=327;\
        slot-description=sd;slot-manufacturer=sm?pin-source=file:/run/pin&module-name=ykcs11&\
        module-path=/usr/lib/x.so&x-vendor=1"
            .parse()
            .unwrap();
    assert_eq!(uri.token.as_deref(), Some("The Token"));
    assert_eq!(uri.object.as_deref(), Some("my/key"));
    assert_eq!(uri.id.as_deref(), Some(&[1, 255][..]));
    assert_eq!((uri.object_type, uri.slot_id), (Some(ObjectType::Private), Some(327)));
    assert_eq!(uri.pin_source.as_deref(), Some("file:/run/pin"));
    assert_eq!(uri.module_path.as_deref(), Some("/usr/lib/x.so"));
    assert_eq!(uri.to_string().parse::<Pkcs11Uri>().unwrap(), uri);
    assert_eq!("pkcs11:".parse::<Pkcs11Uri>().unwrap(), Pkcs11Uri::default());
}

#[test]
fn errors_never_contain_a_value() {
    let cases = [
        ("", "a PKCS#11 URI must begin with `pkcs11:`"),
        ("http:token=a", "a PKCS#11 URI must begin with `pkcs11:`"),
        ("pkcs11:token", "part 1 of the URI is not `name=value`"),
        ("pkcs11:token=a;tokne=canary", "unknown PKCS#11 URI attribute `tokne`"),
        ("pkcs11:token=a;token=canary", "duplicate attribute `token`"),
        ("pkcs11:pin-source=/canary", "`pin-source` must come after the `?`"),
        ("pkcs11:id=%0", "invalid percent-encoding in the value of `id`"),
        ("pkcs11:id=%+1", "invalid percent-encoding in the value of `id`"),
        ("pkcs11:token=can ary", "the value of `token` contains a character that must be escaped as `%20`"),
        ("pkcs11:object=can/ary", "the value of `object` contains a character that must be escaped as `%2F`"),
        ("pkcs11:token=%ff", "the value of `token` is not UTF-8"),
        ("pkcs11:type=key", "`type` must be one of cert, data, private, public, secret-key"),
        ("pkcs11:slot-id=+1", "`slot-id` must be a decimal number"),
        ("pkcs11:slot-id=99999999999999999999", "`slot-id` must be a decimal number"),
        ("pkcs11:token=é", "the value of `token` contains a character that must be escaped as `%C3`"),
    ];
    for (text, message) in cases {
        let error = text.parse::<Pkcs11Uri>().unwrap_err().to_string();
        assert_eq!(error, message, "{text}");
        assert!(!error.contains("canary"));
    }
}

#[test]
fn rejects_pin_value_anywhere_in_the_uri() {
    for text in [
        "pkcs11:pin-value=canary",
        "pkcs11:token=a?pin-value=canary",
        "pkcs11:?module-path=/x&pin-value=canary",
    ] {
        let error = text.parse::<Pkcs11Uri>().unwrap_err();
        assert_eq!(error, UriError::PinValue);
        assert!(!format!("{error} {error:?}").contains("canary"));
    }
}

fn any_uri() -> impl Strategy<Value = Pkcs11Uri> {
    let text = || proptest::option::of(".{0,12}");
    let octets = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..6));
    ((text(), text(), text(), text(), text()), octets, any::<Option<u64>>(), (text(), text())).prop_map(
        |((token, serial, object, model, slot_description), id, slot_id, (pin_source, module_path))| {
            Pkcs11Uri {
                token,
                serial,
                object,
                model,
                slot_description,
                id,
                slot_id,
                pin_source,
                module_path,
                object_type: Some(ObjectType::Private),
                ..Pkcs11Uri::default()
            }
        },
    )
}

proptest! {
    #[test]
    fn display_round_trips(uri in any_uri()) {
        prop_assert_eq!(uri.to_string().parse::<Pkcs11Uri>().unwrap(), uri);
    }

    #[test]
    fn parser_accepts_or_rejects_any_text(text in "(pkcs11:)?[a-z=;?&%0-9\\PC-]{0,60}") {
        if let Ok(uri) = text.parse::<Pkcs11Uri>() {
            prop_assert_eq!(uri.to_string().parse::<Pkcs11Uri>().unwrap(), uri);
        }
    }
}

use super::*;
use proptest::prelude::*;

#[test]
fn every_attribute_is_read() {
    let uri: Uri = "PKCS11:token=The%20Token;manufacturer=m;serial=0001;model=x;library-manufacturer=lm;\
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
    assert_eq!(uri.to_string().parse::<Uri>().unwrap(), uri);
    assert_eq!("pkcs11:".parse::<Uri>().unwrap(), Uri::default());
}

#[test]
fn what_is_wrong_is_said_without_repeating_a_value() {
    let cases = [
        ("", "a PKCS#11 URI begins with `pkcs11:`"),
        ("http:token=a", "a PKCS#11 URI begins with `pkcs11:`"),
        ("pkcs11:token", "part 1 of the URI is not `name=value`"),
        ("pkcs11:token=a;tokne=canary", "`tokne` is no attribute of a PKCS#11 URI"),
        ("pkcs11:token=a;token=canary", "`token` is there twice"),
        ("pkcs11:pin-source=/canary", "`pin-source` belongs after the `?`"),
        ("pkcs11:id=%0", "the value of `id` has a `%` without two hexadecimal digits after it"),
        ("pkcs11:id=%+1", "the value of `id` has a `%` without two hexadecimal digits after it"),
        ("pkcs11:token=can ary", "the value of `token` has a character that has to be written as `%20`"),
        ("pkcs11:object=can/ary", "the value of `object` has a character that has to be written as `%2F`"),
        ("pkcs11:token=%ff", "the value of `token` is not UTF-8"),
        ("pkcs11:type=key", "`type` is one of cert, data, private, public, secret-key"),
        ("pkcs11:slot-id=+1", "`slot-id` is a decimal number"),
        ("pkcs11:slot-id=99999999999999999999", "`slot-id` is a decimal number"),
        ("pkcs11:token=é", "the value of `token` has a character that has to be written as `%C3`"),
    ];
    for (text, message) in cases {
        let error = text.parse::<Uri>().unwrap_err().to_string();
        assert_eq!(error, message, "{text}");
        assert!(!error.contains("canary"));
    }
}

#[test]
fn a_pin_in_the_uri_is_refused_wherever_it_stands() {
    for text in [
        "pkcs11:pin-value=canary",
        "pkcs11:token=a?pin-value=canary",
        "pkcs11:?module-path=/x&pin-value=canary",
    ] {
        let error = text.parse::<Uri>().unwrap_err();
        assert_eq!(error, UriError::PinValue);
        assert!(!format!("{error} {error:?}").contains("canary"));
    }
}

fn any_uri() -> impl Strategy<Value = Uri> {
    let text = || proptest::option::of(".{0,12}");
    let octets = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..6));
    ((text(), text(), text(), text(), text()), octets, any::<Option<u64>>(), (text(), text())).prop_map(
        |((token, serial, object, model, slot_description), id, slot_id, (pin_source, module_path))| Uri {
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
            ..Uri::default()
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(uri in any_uri()) {
        prop_assert_eq!(uri.to_string().parse::<Uri>().unwrap(), uri);
    }

    #[test]
    fn no_text_can_break_the_reader(text in "(pkcs11:)?[a-z=;?&%0-9\\PC-]{0,60}") {
        if let Ok(uri) = text.parse::<Uri>() {
            prop_assert_eq!(uri.to_string().parse::<Uri>().unwrap(), uri);
        }
    }
}

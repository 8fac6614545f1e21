//! Enums for fields whose values are words: the known ones as variants, any other as written, because
//! validation reports it and a file is written back unchanged.

/// Defines an enum of the words of a field, with `as_str`, `From<&str>` and [`Decode`](crate::Decode).
macro_rules! wire_text {
    (
        $(#[$meta:meta])*
        $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            /// Missing or empty.
            #[default]
            Unset,
            $($(#[$variant_meta])* $variant,)+
            /// Any other text, as written.
            Unknown(String),
        }

        impl $name {
            /// The text of the field; empty if it is unset.
            pub fn as_str(&self) -> &str {
                match self {
                    $name::Unset => "",
                    $($name::$variant => $text,)+
                    $name::Unknown(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                match text {
                    "" => $name::Unset,
                    $($text => $name::$variant,)+
                    other => $name::Unknown(other.to_owned()),
                }
            }
        }

        impl $crate::Decode for $name {
            fn decode(node: &$crate::tree::Node, decoder: &mut $crate::Decoder) -> Option<Self> {
                String::decode(node, decoder).map(|text| $name::from(text.as_str()))
            }
        }
    };
}

pub(crate) use wire_text;

#[cfg(test)]
mod tests {
    use crate::authentication_config::AudienceMatchPolicy;
    use crate::image_provider_config::CacheType;
    use crate::kubeconfig::InteractiveMode;

    #[test]
    fn every_text_is_kept_and_only_the_exact_word_is_known() {
        for text in ["", "Never", "IfAvailable", "Always", "never", " Never", "MatchAny", "Token"] {
            assert_eq!(InteractiveMode::from(text).as_str(), text);
            assert_eq!(AudienceMatchPolicy::from(text).as_str(), text);
            assert_eq!(CacheType::from(text).as_str(), text);
        }
        assert_eq!(InteractiveMode::from("never"), InteractiveMode::Unknown("never".to_owned()));
        assert_eq!(InteractiveMode::from("IfAvailable"), InteractiveMode::IfAvailable);
        assert_eq!(AudienceMatchPolicy::from("MatchAny"), AudienceMatchPolicy::MatchAny);
        assert_eq!(CacheType::from("ServiceAccount"), CacheType::ServiceAccount);
        assert_eq!(CacheType::from(""), CacheType::Unset);
    }
}

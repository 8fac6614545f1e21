//! What Kubernetes versions added to their environments: libraries, and functions of libraries that existed already.
// V5

use super::declaration::Declaration;
use super::environment::Library;
use crate::functions;

/// Something that a Kubernetes version added to its environments.
#[derive(Clone, Copy)]
pub(crate) enum Addition {
    /// A whole library.
    Library(Library),
    /// Functions of a library that exists already.
    Functions(&'static [Declaration]),
}

/// What the environments have, with the minor version that added it.
pub(crate) const ADDITIONS: [(u16, Addition); 16] = [
    (0, Addition::Library(Library::Standard)),
    (0, Addition::Library(Library::Strings)),
    (0, Addition::Library(Library::KubernetesLists)),
    (0, Addition::Library(Library::Regex)),
    (0, Addition::Library(Library::Url)),
    (27, Addition::Library(Library::Authorization)),
    (28, Addition::Library(Library::Optional)),
    (28, Addition::Library(Library::Quantity)),
    (29, Addition::Library(Library::Sets)),
    (30, Addition::Library(Library::Network)),
    (31, Addition::Library(Library::Format)),
    (32, Addition::Library(Library::TwoVariables)),
    (33, Addition::Library(Library::Semver)),
    (34, Addition::Library(Library::Lists)),
    (37, Addition::Functions(functions::lists::INCLUDES)),
    (38, Addition::Functions(functions::kubernetes::NETWORK_IS_MASK)),
];

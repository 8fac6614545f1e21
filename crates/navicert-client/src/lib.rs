//! From a kubeconfig to an authenticated request.

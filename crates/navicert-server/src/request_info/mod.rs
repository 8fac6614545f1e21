//! How kube-apiserver interprets the start of a request: verb, group, namespace, resource, subresource and name from
//! method, path and query. Authorization, audit and `--read-only` depend on that interpretation and not on the HTTP
//! method: a GET of `pods/exec` runs a command, a GET with `?watch=1` is a stream.
//!
//! The reference is `RequestInfoFactory` of `k8s.io/apiserver` (`make differential KIND=request-info`).

mod label_selector;
mod list_options;

use std::borrow::Cow;
use std::ops::Range;

use http::Method;
use navicert_go::percent;
use thiserror::Error;

use list_options::{ListOptions, Parameters};

/// A request as kube-apiserver interprets it.
///
/// ```
/// use navicert_server::request_info::RequestInfo;
///
/// let info = RequestInfo::read("GET", "/api/v1/namespaces/a/pods", Some("watch=1"))?;
/// assert_eq!((info.verb(), info.resource().map(|resource| resource.resource())), ("watch".into(), Some("pods")));
/// # Ok::<(), navicert_server::request_info::RequestInfoError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestInfo<'a> {
    /// The decoded path.
    path: Cow<'a, str>,
    method: &'a str,
    /// `api` or `apis`, at the start of a path with enough segments.
    api_prefix: Range<usize>,
    resource: Option<ResourceSpans<'a>>,
}

/// A request that kube-apiserver rejects before it authorizes it, or that cannot be represented as text.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestInfoError {
    /// The path has a control character or an invalid escape sequence, or does not begin with `/`.
    #[error("invalid path")]
    InvalidPath,
    /// A `watch` or `proxy` prefix without a resource.
    #[error("missing resource after the `watch` or `proxy` prefix")]
    NoResource,
    /// The decoded path or a selector is not UTF-8.
    #[error("the path or a selector is not UTF-8")]
    NotUtf8,
}

/// The verb of a request for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResourceVerb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Streams changes.
    Watch,
    /// Creates an object.
    Create,
    /// Replaces an object.
    Update,
    /// Changes an object.
    Patch,
    /// Deletes an object.
    Delete,
    /// Deletes a collection.
    DeleteCollection,
    /// The removed `/api/v1/proxy/…` prefix.
    Proxy,
    /// A method without a verb, such as OPTIONS.
    Other,
}

impl ResourceVerb {
    /// The verb as rules of authorization spell it; empty for a method without a verb.
    pub fn as_str(self) -> &'static str {
        match self {
            ResourceVerb::Get => "get",
            ResourceVerb::List => "list",
            ResourceVerb::Watch => "watch",
            ResourceVerb::Create => "create",
            ResourceVerb::Update => "update",
            ResourceVerb::Patch => "patch",
            ResourceVerb::Delete => "delete",
            ResourceVerb::DeleteCollection => "deletecollection",
            ResourceVerb::Proxy => "proxy",
            ResourceVerb::Other => "",
        }
    }

    fn from_method(method: &str) -> Self {
        match method {
            "GET" | "HEAD" => ResourceVerb::Get,
            "POST" => ResourceVerb::Create,
            "PUT" => ResourceVerb::Update,
            "PATCH" => ResourceVerb::Patch,
            "DELETE" => ResourceVerb::Delete,
            _ => ResourceVerb::Other,
        }
    }
}

/// Where the parts of a resource request are in the decoded path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ResourceSpans<'a> {
    verb: ResourceVerb,
    group: Range<usize>,
    version: Range<usize>,
    namespace: Range<usize>,
    /// Resource, name, subresource and what follows.
    parts: Range<usize>,
    /// The name that a list or watch requires with a field selector.
    selected_name: Option<String>,
    field_selector: Option<Cow<'a, str>>,
    label_selector: Option<Cow<'a, str>>,
}

impl<'a> RequestInfo<'a> {
    /// Interprets the head of a request.
    ///
    /// # Errors
    /// [`RequestInfoError`].
    pub fn from_parts(method: &'a Method, uri: &'a http::Uri) -> Result<Self, RequestInfoError> {
        RequestInfo::read(method.as_str(), uri.path(), uri.query())
    }

    /// Interprets a method, a path as sent (with escape sequences) and a query.
    ///
    /// # Errors
    /// [`RequestInfoError`].
    pub fn read(method: &'a str, path: &'a str, query: Option<&'a str>) -> Result<Self, RequestInfoError> {
        let has_control = |text: &str| text.bytes().any(|byte| byte.is_ascii_control());
        if !path.starts_with('/') || has_control(path) || query.is_some_and(has_control) {
            return Err(RequestInfoError::InvalidPath);
        }
        let path = match percent::decode(path, percent::Plus::Literal).ok_or(RequestInfoError::InvalidPath)? {
            Cow::Borrowed(bytes) => std::str::from_utf8(bytes).map(Cow::Borrowed).ok(),
            Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).ok(),
        };
        let path = path.ok_or(RequestInfoError::NotUtf8)?;
        let mut info = RequestInfo { path, method, api_prefix: 0..0, resource: None };
        let mut segments = Segments::new(&info.path);
        let minimum = match segments.first(&info.path) {
            "api" => 3,
            "apis" => 4,
            _ => return Ok(info),
        };
        let count = segments.count(&info.path);
        if count < 3 {
            return Ok(info);
        }
        info.api_prefix = segments.take(&info.path);
        if count < minimum {
            return Ok(info);
        }
        let group = if minimum == 4 { segments.take(&info.path) } else { 0..0 };
        let version = segments.take(&info.path);
        info.resource = Some(ResourceSpans::read(&info, segments, group, version, query)?);
        Ok(info)
    }

    /// The decoded path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The verb: of a resource request a verb of Kubernetes, else the HTTP method in lower case.
    pub fn verb(&self) -> Cow<'static, str> {
        match &self.resource {
            Some(resource) => Cow::Borrowed(resource.verb.as_str()),
            None => Cow::Owned(self.method.to_lowercase()),
        }
    }

    /// `api` or `apis`; empty for other paths, and for those with fewer than three segments.
    pub fn api_prefix(&self) -> &str {
        self.slice(&self.api_prefix)
    }

    /// The resource; `None` for a non-resource request.
    pub fn resource(&self) -> Option<ResourceRequest<'_>> {
        self.resource.as_ref().map(|spans| ResourceRequest { info: self, spans })
    }

    fn slice(&self, range: &Range<usize>) -> &str {
        self.path.get(range.clone()).unwrap_or_default()
    }
}

impl<'a> ResourceSpans<'a> {
    fn read(
        info: &RequestInfo<'a>,
        mut segments: Segments,
        group: Range<usize>,
        version: Range<usize>,
        query: Option<&'a str>,
    ) -> Result<Self, RequestInfoError> {
        let path = &*info.path;
        let prefix_verb = match segments.first(path) {
            "watch" => Some(ResourceVerb::Watch),
            "proxy" => Some(ResourceVerb::Proxy),
            _ => None,
        };
        if prefix_verb.is_some() {
            if segments.count(path) < 2 {
                return Err(RequestInfoError::NoResource);
            }
            segments.take(path);
        }
        let mut namespace = 0..0;
        if segments.first(path) == "namespaces" && segments.count(path) > 1 {
            let mut behind = segments.clone();
            behind.take(path);
            namespace = behind.take(path);
            // `status` and `finalize` are subresources of a namespace, everything else is a resource in it.
            if behind.count(path) > 0 && !matches!(behind.first(path), "status" | "finalize") {
                segments = behind;
            }
        }
        let verb = prefix_verb.unwrap_or_else(|| ResourceVerb::from_method(info.method));
        let parts = segments.rest();
        let mut spans = ResourceSpans {
            verb,
            group,
            version,
            namespace,
            parts,
            selected_name: None,
            field_selector: None,
            label_selector: None,
        };
        let has_name = info.slice(&spans.parts).split('/').nth(1).is_some_and(|name| !name.is_empty());
        if prefix_verb.is_none() && !has_name {
            spans.apply_query(query)?;
        }
        Ok(spans)
    }

    /// Without a name, a GET is a list or a watch, and a DELETE deletes a collection; both have selectors.
    fn apply_query(&mut self, query: Option<&'a str>) -> Result<(), RequestInfoError> {
        let parameters = match self.verb {
            ResourceVerb::Get | ResourceVerb::Delete => Parameters::read(query.unwrap_or_default()),
            _ => return Ok(()),
        };
        let text = |value: Option<&Cow<'a, [u8]>>| match value {
            None => Ok(None),
            Some(Cow::Borrowed(bytes)) => {
                std::str::from_utf8(bytes).map(|text| Some(Cow::Borrowed(text))).map_err(drop)
            }
            Some(Cow::Owned(bytes)) => {
                String::from_utf8(bytes.clone()).map(|text| Some(Cow::Owned(text))).map_err(drop)
            }
        };
        let not_utf8 = |()| RequestInfoError::NotUtf8;
        self.field_selector = text(parameters.first("fieldSelector")).map_err(not_utf8)?;
        self.label_selector = text(parameters.first("labelSelector")).map_err(not_utf8)?;
        if self.verb == ResourceVerb::Delete {
            self.verb = ResourceVerb::DeleteCollection;
            return Ok(());
        }
        let options = ListOptions::read(&parameters, self.field_selector.as_deref());
        self.verb = if options.watch { ResourceVerb::Watch } else { ResourceVerb::List };
        self.selected_name = options.name;
        Ok(())
    }
}

/// A request for a resource or subresource.
#[derive(Clone, Copy, Debug)]
pub struct ResourceRequest<'i> {
    info: &'i RequestInfo<'i>,
    spans: &'i ResourceSpans<'i>,
}

impl<'i> ResourceRequest<'i> {
    /// The verb.
    pub fn verb(&self) -> ResourceVerb {
        self.spans.verb
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &'i str {
        self.info.slice(&self.spans.group)
    }

    /// The API version.
    pub fn version(&self) -> &'i str {
        self.info.slice(&self.spans.version)
    }

    /// The namespace; empty for a request without one. A request for a namespace has its name here too.
    pub fn namespace(&self) -> &'i str {
        self.info.slice(&self.spans.namespace)
    }

    /// The plural name of the resource.
    pub fn resource(&self) -> &'i str {
        self.parts().next().unwrap_or_default()
    }

    /// The name of the object: from the path, or the one that the field selector of a list or watch requires.
    pub fn name(&self) -> &'i str {
        match &self.spans.selected_name {
            Some(name) => name,
            None => self.parts().nth(1).unwrap_or_default(),
        }
    }

    /// The subresource; empty if there is none.
    pub fn subresource(&self) -> &'i str {
        match self.spans.verb {
            ResourceVerb::Proxy => "",
            _ => self.parts().nth(2).unwrap_or_default(),
        }
    }

    /// The segments from the resource on: resource, name, subresource, and what only the handler interprets.
    pub fn parts(&self) -> impl Iterator<Item = &'i str> {
        self.info.slice(&self.spans.parts).split('/')
    }

    /// The field selector of a list, watch or deletecollection, as sent; empty if there is none.
    pub fn field_selector(&self) -> &'i str {
        self.spans.field_selector.as_deref().unwrap_or_default()
    }

    /// The label selector of a list, watch or deletecollection, as sent; empty if there is none.
    pub fn label_selector(&self) -> &'i str {
        self.spans.label_selector.as_deref().unwrap_or_default()
    }
}

/// The rest of a path without slashes at both ends, taken apart from the left.
#[derive(Clone, Debug)]
struct Segments {
    start: usize,
    end: usize,
    is_empty: bool,
}

impl Segments {
    fn new(path: &str) -> Self {
        let end = path.trim_end_matches('/').len();
        let inner = path.get(..end).unwrap_or_default();
        let start = inner.len() - inner.trim_start_matches('/').len();
        Segments { start, end, is_empty: start == end }
    }

    fn text<'p>(&self, path: &'p str) -> &'p str {
        path.get(self.start..self.end).unwrap_or_default()
    }

    fn count(&self, path: &str) -> usize {
        if self.is_empty { 0 } else { self.text(path).split('/').count() }
    }

    fn first<'p>(&self, path: &'p str) -> &'p str {
        self.text(path).split('/').next().unwrap_or_default()
    }

    /// Takes the first segment.
    fn take(&mut self, path: &str) -> Range<usize> {
        let taken = self.start..self.start.saturating_add(self.first(path).len());
        self.is_empty = taken.end == self.end;
        self.start = taken.end.saturating_add(1).min(self.end);
        taken
    }

    fn rest(&self) -> Range<usize> {
        self.start..self.end
    }
}

#[cfg(test)]
mod tests;

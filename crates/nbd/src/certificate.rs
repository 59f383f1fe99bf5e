//! The names in a certificate.

use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The names in a verified certificate in DER: the common name of its subject, and its DNS names and mail addresses. None if it
/// cannot be parsed.
pub(super) fn names(der: &[u8]) -> Vec<String> {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else { return Vec::new() };
    let subject = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    let others = certificate.subject_alternative_name().ok().flatten();
    let others = others.iter().flat_map(|extension| &extension.value.general_names);
    let others = others.filter_map(|name| match name {
        GeneralName::DNSName(name) | GeneralName::RFC822Name(name) => Some(*name),
        _ => None,
    });
    subject.chain(others).map(str::to_string).collect()
}

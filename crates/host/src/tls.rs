//! TLS settings: certificates and keys from PEM files.

use crate::TlsUse;
use headstack_nbd::Tls;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// TLS settings of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsSettings {
    /// File with the server's certificate and the intermediate certificates, in PEM.
    pub certificate: PathBuf,
    /// File with the certificate's private key, in PEM.
    pub key: PathBuf,
    /// File with the certificates of the authorities that sign clients' certificates, in PEM.
    #[serde(default)]
    pub client_ca: Option<PathBuf>,
    /// Whether clients present certificates. Default: `required` with a `client_ca`, else `none`.
    #[serde(default)]
    pub clients: Option<ClientCertificates>,
    /// Whether clients without TLS are refused.
    #[serde(default = "yes")]
    pub required: bool,
    /// Overrides `required` for the clients of one address of `listen`: `required`, `optional` or `off`. A Unix socket, for
    /// example, needs no TLS.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub listeners: BTreeMap<String, TlsUse>,
}

fn yes() -> bool {
    true
}

/// Whether clients present certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClientCertificates {
    /// Not requested.
    None,
    /// Requested; an invalid one closes the connection.
    Optional,
    /// Required.
    Required,
}

/// Why TLS is not available.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the names of the fields say it")]
pub enum TlsError {
    /// A file cannot be read, or has the wrong contents.
    #[error("{key}: {path}: {error}")]
    File { key: &'static str, path: PathBuf, error: String },
    /// Certificate and key do not match, or cannot be used.
    #[error("{key}: {error}")]
    Unfit { key: &'static str, error: String },
    /// Clients are to present certificates, and no authority is given.
    #[error("clients: certificates are {wanted} and `client_ca` names no file with who signs them")]
    NoAuthority { wanted: &'static str },
}

impl TlsSettings {
    /// Reads the files.
    ///
    /// *Errors:* a file cannot be read or has the wrong contents; the key does not match the certificate.
    pub fn load(&self) -> Result<Tls, TlsError> {
        let chain = certificates("certificate", &self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| file("key", &self.key, error.to_string()))?;
        let unfit = |key, error: &dyn std::fmt::Display| TlsError::Unfit { key, error: error.to_string() };
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| unfit("certificate", &error))?;
        let builder = match self.verifier()? {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|error| unfit("key", &error))?;
        // Connections to a disk are long; resumption would only require the server to keep sessions.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Tls { config: Arc::new(config), required: self.required })
    }

    fn verifier(&self) -> Result<Option<Arc<dyn rustls::server::danger::ClientCertVerifier>>, TlsError> {
        let usual =
            if self.client_ca.is_some() { ClientCertificates::Required } else { ClientCertificates::None };
        let (wanted, optional) = match self.clients.unwrap_or(usual) {
            ClientCertificates::None => return Ok(None),
            ClientCertificates::Optional => ("optional", true),
            ClientCertificates::Required => ("required", false),
        };
        let path = self.client_ca.as_ref().ok_or(TlsError::NoAuthority { wanted })?;
        let wrong = |error: String| file("client_ca", path, error);
        let mut roots = RootCertStore::empty();
        for certificate in certificates("client_ca", path)? {
            roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
        }
        let provider = Arc::new(ring::default_provider());
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let builder = if optional { builder.allow_unauthenticated() } else { builder };
        builder.build().map(Some).map_err(|error| wrong(error.to_string()))
    }
}

fn file(key: &'static str, path: &Path, error: String) -> TlsError {
    TlsError::File { key, path: path.to_path_buf(), error }
}

/// All certificates of a file; at least one.
fn certificates(key: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = || CertificateDer::pem_file_iter(path)?.collect::<Result<Vec<_>, _>>();
    let found = read().map_err(|error| file(key, path, error.to_string()))?;
    if found.is_empty() {
        Err(file(key, path, "there is no certificate in it".to_string()))
    } else {
        Ok(found)
    }
}

//! Certificates, made by openssl for a test.

use headstack_host::{ClientCertificates, TlsSettings};
use headstack_prerequisites::PROGRAM_FOLDERS;
pub(crate) use headstack_prerequisites::have_programs as have;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

const CONFIG: &str = "\
[req]
distinguished_name = name
[name]
[ca]
basicConstraints = critical, CA:TRUE
[server]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = serverAuth
subjectAltName = DNS:localhost, IP:127.0.0.1
[client]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = clientAuth
subjectAltName = DNS:client.example.org
";

/// A folder with an authority's certificate, a server's and a client's, under the names by which libnbd and QEMU know them.
pub(crate) struct Authority {
    folder: TempDir,
}

/// Runs a program; whether it succeeded, and what it printed.
pub(crate) fn run(name: &str, args: &[&str]) -> (bool, String) {
    let output = Command::new(name).args(args).env("PATH", PROGRAM_FOLDERS).stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{name}: {error}"));
    let text = [&output.stdout[..], &output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

impl Authority {
    /// Nothing, and a recorded skip, where there is no openssl.
    pub(crate) fn new() -> Option<Authority> {
        if !have(&["openssl"]) {
            return None;
        }
        let authority = Authority { folder: tempfile::tempdir().expect("there is room") };
        std::fs::File::create_new(authority.path("config"))
            .and_then(|mut file| std::io::Write::write_all(&mut file, CONFIG.as_bytes()))
            .expect("there is room");
        authority.sign("ca", "ca", "an authority", None);
        authority.sign("server", "server", "localhost", Some("ca"));
        authority.sign("client", "client", "alice", Some("ca"));
        Some(authority)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes a certificate and its key.
    pub(crate) fn sign(&self, file: &str, kind: &str, name: &str, by: Option<&str>) {
        let text = |name: String| self.path(&name).display().to_string();
        let (certificate, key) = (text(format!("{file}-cert.pem")), text(format!("{file}-key.pem")));
        let (config, subject) = (text("config".to_string()), format!("/CN={name}"));
        let mut args = vec!["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
        args.extend(["-days", "2", "-config", &config, "-extensions", kind, "-subj", &subject]);
        args.extend(["-keyout", &key, "-out", &certificate]);
        let signer = by.map(|by| (text(format!("{by}-cert.pem")), text(format!("{by}-key.pem"))));
        if let Some((certificate, key)) = &signer {
            args.extend(["-CA", certificate, "-CAkey", key]);
        }
        let (success, text) = run("openssl", &args);
        assert!(success, "{text}");
    }

    pub(crate) fn settings(&self, clients: ClientCertificates, required: bool) -> TlsSettings {
        TlsSettings {
            listeners: Default::default(),
            certificate: self.path("server-cert.pem"),
            key: self.path("server-key.pem"),
            client_ca: Some(self.path("ca-cert.pem")),
            clients: Some(clients),
            required,
        }
    }

    /// A client that shows a certificate, if it is to show one.
    pub(crate) fn client(&self, shown: Option<&str>) -> ClientConnection {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate("ca")).expect("it is a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("there are versions")
            .with_root_certificates(roots);
        let config = match shown {
            None => builder.with_no_client_auth(),
            Some(name) => {
                let key = PrivateKeyDer::from_pem_file(self.path(&format!("{name}-key.pem")));
                let chain = vec![self.certificate(name)];
                builder.with_client_auth_cert(chain, key.expect("it is a key")).expect("they go together")
            }
        };
        let name = ServerName::try_from("localhost").expect("it is a name");
        ClientConnection::new(Arc::new(config), name).expect("the configuration is good")
    }

    fn certificate(&self, name: &str) -> CertificateDer<'static> {
        let path = self.path(&format!("{name}-cert.pem"));
        CertificateDer::from_pem_file(path).expect("it is a certificate")
    }
}

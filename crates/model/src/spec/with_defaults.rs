//! Default values next to the keys that have them.

/// A table of a drive file in which a key's default stands behind its type: `pub depth: u32 = 1`. A key without one has the default of its
/// type. The `Default` of the table comes from here, with the syntax that Rust's RFC 3681 proposes.
macro_rules! with_defaults {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $($(#[$of_key:meta])* pub $key:ident: $kind:ty $(= $default:expr)?,)*
        }
    ) => {
        $(#[$about])*
        pub struct $name {
            $($(#[$of_key])* pub $key: $kind,)*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($key: with_defaults!(@value $($default)?),)* }
            }
        }
    };
    (@value $default:expr) => { $default };
    (@value) => { Default::default() };
}

pub(super) use with_defaults;

//! Settings that are written once: what they mean (also their line in `dss config show`), their type, their default.

/// A struct of settings that are all optional in files.
macro_rules! settings {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty = $default:expr,)* }) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize, documented::DocumentedFields,
        )]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }
    };
}
pub(super) use settings;

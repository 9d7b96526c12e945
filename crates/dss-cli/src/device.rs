//! Devices by name.

use burn::tensor::Device;

use crate::failure::Failure;

/// Devices of this build.
const HERE: [&str; 1] = ["cpu"];
/// Devices that Burn has a backend for, and its feature.
const ELSEWHERE: [(&str, &str); 5] = [
    ("cuda", "cuda"),
    ("rocm", "rocm"),
    ("metal", "metal"),
    ("vulkan", "vulkan"),
    ("wgpu", "wgpu"),
];

/// The device called `name`, without autodiff.
pub fn named(name: &str) -> Result<Device, Failure> {
    if name == "cpu" {
        return Ok(Device::flex());
    }
    let here = HERE.join(", ");
    match ELSEWHERE.iter().find(|d| d.0 == name) {
        Some((_, feature)) => Err(Failure::usage(format!(
            "this build has no device `{name}`; it has: {here}"
        ))
        .hint(format!(
            "a build for it needs Burn's feature `{feature}`: add it to `burn-core` in Cargo.toml, name the \
             device in crates/dss-cli/src/device.rs, then `cargo install --path crates/dss-cli`"
        ))),
        None => Err(Failure::usage(format!("unknown device `{name}`; this build has: {here}"))),
    }
}

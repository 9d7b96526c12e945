//! Devices by name.

use burn::tensor::Device;

use crate::failure::Failure;

/// The device called `name`, without autodiff.
pub fn named(name: &str) -> Result<Device, Failure> {
    match name {
        "cpu" => Ok(Device::flex()),
        _ => Err(Failure::usage(format!(
            "unknown device `{name}`: this program computes on the CPU only"
        ))
        .hint("leave out --device; ARCHITECTURE.md explains how to add another device")),
    }
}

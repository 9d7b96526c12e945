//! Devices by name.

use burn::tensor::Device;

use crate::failure::Failure;

/// The device called `name`, without autodiff.
pub fn named(name: &str) -> Result<Device, Failure> {
    match name {
        "cpu" => Ok(Device::flex()),
        _ => Err(Failure::usage(format!("no device `{name}`: this program computes on the CPU"))
            .hint("leave --device out; ARCHITECTURE.md says what another device takes")),
    }
}

//! The one error type of the crate.

use crate::real::Real;

/// What went wrong, where, and what was expected.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A slice has the wrong number of elements.
    #[error("{op}: `{name}` must be {shape} = {expected} elements, but has {got}")]
    Shape {
        /// The operation that was called.
        op: &'static str,
        /// The argument.
        name: &'static str,
        /// Its shape in the letters of the glossary.
        shape: &'static str,
        /// Elements that shape means here.
        expected: usize,
        /// Elements that came.
        got: usize,
    },
    /// A NaN or an infinity among the arguments.
    #[error("{op}: `{name}`[{index}] is {value}; every value must be finite")]
    NonFinite {
        /// The operation that was called.
        op: &'static str,
        /// The argument.
        name: &'static str,
        /// Flat index of the first offender.
        index: usize,
        /// The offender.
        value: f64,
    },
    /// A size or option outside what the operation is defined for.
    #[error("{op}: {what}")]
    Invalid {
        /// The operation that was called.
        op: &'static str,
        /// What is wrong and what would be right.
        what: String,
    },
    /// The mathematics has no answer here (a pole, a zero eigenvalue, a defective matrix).
    #[error("{op}: {what}")]
    Singular {
        /// The operation that was called.
        op: &'static str,
        /// Which condition fails, and where.
        what: String,
    },
    /// A softmax model with Re λ > 0 was asked to continue past the length its kernel is defined for.
    #[error(
        "{op}: position {position} lies beyond the kernel's length {length}, and {modes} modes have Re λ > 0: \
         their kernel grows without bound there (reset the state, or use a model without such modes)"
    )]
    PastEnd {
        /// The operation that was called.
        op: &'static str,
        /// First position that cannot be computed.
        position: usize,
        /// The length L of the softmax.
        length: usize,
        /// How many modes have Re λ > 0.
        modes: usize,
    },
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Finds the first NaN or infinity.
pub(crate) fn check_finite<T: Real>(op: &'static str, name: &'static str, x: &[T]) -> Result<()> {
    match x.iter().position(|x| !x.is_finite()) {
        None => Ok(()),
        Some(index) => Err(Error::NonFinite { op, name, index, value: x[index].to_f64() }),
    }
}

/// Checks a slice's length against the shape it must have.
pub(crate) fn check_len(
    op: &'static str,
    name: &'static str,
    shape: &'static str,
    expected: usize,
    got: usize,
) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::Shape { op, name, shape, expected, got }) }
}

/// Checks that `systems` Λ can be shared among H features.
pub(crate) fn check_systems(op: &'static str, h: usize, systems: usize) -> Result<()> {
    if systems == 0 || !h.is_multiple_of(systems) {
        let what = format!("the systems must divide H = {h}, but are {systems}");
        return Err(Error::Invalid { op, what });
    }
    Ok(())
}

/// Checks that the product of `factors`, a number of bytes, can be addressed; `sizes` names them in the error.
pub(crate) fn check_memory(
    op: &'static str,
    factors: impl IntoIterator<Item = usize>,
    sizes: std::fmt::Arguments<'_>,
) -> Result<()> {
    match factors.into_iter().try_fold(1usize, usize::checked_mul) {
        Some(bytes) if bytes <= isize::MAX as usize => Ok(()),
        _ => Err(Error::Invalid { op, what: format!("{sizes} is more than memory can hold") }),
    }
}

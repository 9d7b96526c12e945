//! The loops that take longest to compile: once here, for both precisions, and not again in every crate that uses them.
//!
//! A generic function is compiled where it is used. Those below come to thousands of lines of machine code for each
//! instruction set, in each test and each program, so [`Real`] has them as methods that are not generic.

#![allow(private_interfaces, reason = "nobody outside this crate can name the trait")]

use crate::conv::{Adjoint, Filter, Inverse, Spectrum};
use crate::kernel::vandermonde::{Powers, Reduce, WeightedSum};
use crate::product::Product;
use crate::real::{Real, dispatch};

macro_rules! loops {
    ($($name:ident: $op:ident,)*) => {
        /// Loops of one precision, each with the widest instruction set of this machine. Private: it seals [`Real`].
        pub trait Loops: Sized {
            $(#[doc(hidden)] fn $name(op: $op<'_, Self>) where Self: Real;)*
        }
        impl Loops for f32 {
            $(fn $name(op: $op<'_, Self>) {
                dispatch(op);
            })*
        }
        impl Loops for f64 {
            $(fn $name(op: $op<'_, Self>) {
                dispatch(op);
            })*
        }
    };
}

loops! {
    filter: Filter,
    adjoint: Adjoint,
    spectrum: Spectrum,
    inverse: Inverse,
    product: Product,
    powers: Powers,
    weighted: WeightedSum,
    reduce: Reduce,
}

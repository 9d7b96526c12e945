//! Dense powers of Ā, by repeated squaring.
//!
//! On the stored half x of a conjugate pair Ā acts as a real N×N map of (Re x, Im x).

use super::discrete::Discrete;
use crate::product::{Layout, Product};
use crate::real::Real;

/// A power whose entries are all below this is zero next to I.
const NOTHING: f64 = 1e-40;

/// Ā of one feature and one of its powers, padded to whole cache lines.
pub(crate) struct Powers {
    n: usize,
    width: usize,
    /// `[width, width]` each: Ā, the power, and a place for products.
    a: Vec<f64>,
    power: Vec<f64>,
    product: Vec<f64>,
}

impl Powers {
    pub(crate) fn new(n: usize) -> Self {
        let width = n.next_multiple_of(f64::LINE);
        let zeros = || vec![0.0; width * width];
        Self { n, width, a: zeros(), power: zeros(), product: zeros() }
    }

    /// Takes Ā = diag(ā) − q·rᵀ.
    pub(crate) fn set(&mut self, discrete: &Discrete) {
        let (pairs, width) = (self.n / 2, self.width);
        for (i, &q) in discrete.q.iter().enumerate() {
            for (j, &r) in discrete.r.iter().enumerate() {
                // q·(2 Re r·x)
                let step = if i == j { discrete.a[i] } else { Default::default() };
                let (re, im) = (i * width, (pairs + i) * width);
                self.a[re + j] = step.re - 2.0 * q.re * r.re;
                self.a[re + pairs + j] = -step.im + 2.0 * q.re * r.im;
                self.a[im + j] = step.im - 2.0 * q.im * r.re;
                self.a[im + pairs + j] = step.re + 2.0 * q.im * r.im;
            }
        }
    }

    /// Each row c of `rows`, `[C, N]`, becomes c·(I − Ā^len).
    pub(crate) fn correct(&mut self, len: usize, rows: &mut [f64]) {
        self.raise(len);
        for row in rows.chunks_exact_mut(self.n) {
            let image = &mut self.product[..self.n];
            image.fill(0.0);
            for (c, power) in row.iter().zip(self.power.chunks_exact(self.width)) {
                for (image, power) in image.iter_mut().zip(power) {
                    *image += c * power;
                }
            }
            for (c, image) in row.iter_mut().zip(image) {
                *c -= *image;
            }
        }
    }

    /// The inverse of [`Self::correct`]; false if there is none.
    pub(crate) fn uncorrect(&mut self, len: usize, rows: &mut [f64]) -> bool {
        self.raise(len);
        let (n, width) = (self.n, self.width);
        // The columns of M = I − Ā^len stand as rows: c·M = c̃ is the system Mᵀ·cᵀ = c̃ᵀ.
        let m = &mut self.product;
        for i in 0..n {
            for j in 0..n {
                m[j * width + i] = f64::from(u8::from(i == j)) - self.power[i * width + j];
            }
        }
        eliminate(m, n, width, rows)
    }

    /// power = Ā^len
    fn raise(&mut self, len: usize) {
        self.power.copy_from_slice(&self.a);
        for bit in (0..len.ilog2()).rev() {
            multiply(self.width, &self.power, &self.power, &mut self.product);
            std::mem::swap(&mut self.power, &mut self.product);
            if len >> bit & 1 == 1 {
                multiply(self.width, &self.power, &self.a, &mut self.product);
                std::mem::swap(&mut self.power, &mut self.product);
            }
            if self.power.iter().all(|x| x.abs() < NOTHING) {
                self.power.fill(0.0);
                return;
            }
        }
    }
}

fn multiply(width: usize, a: &[f64], b: &[f64], c: &mut [f64]) {
    let (a_strides, b_layout) = ([width, 1], Layout::Rows(width));
    Product { size: [width; 3], a, a_strides, b, b_layout, c, add: false }.run();
}

/// Solves M·x = r for every r of `rows`, `[C, N]`, in place, by elimination with partial pivoting. M is used up.
fn eliminate(m: &mut [f64], n: usize, width: usize, rows: &mut [f64]) -> bool {
    for i in 0..n {
        let size = |row: &usize| m[row * width + i].abs();
        let pivot = (i..n).max_by(|a, b| size(a).total_cmp(&size(b))).expect("a row is left");
        if !m[pivot * width + i].is_normal() {
            return false;
        }
        if pivot != i {
            let (above, below) = m.split_at_mut(pivot * width);
            above[i * width..][..n].swap_with_slice(&mut below[..n]);
            rows.chunks_exact_mut(n).for_each(|r| r.swap(i, pivot));
        }
        let (above, below) = m.split_at_mut((i + 1) * width);
        let head = &above[i * width..][..n];
        for (row, line) in (i + 1..n).zip(below.chunks_exact_mut(width)) {
            let factor = line[i] / head[i];
            for (x, h) in line[i..n].iter_mut().zip(&head[i..]) {
                *x -= factor * h;
            }
            rows.chunks_exact_mut(n).for_each(|r| r[row] -= factor * r[i]);
        }
    }
    for r in rows.chunks_exact_mut(n) {
        for i in (0..n).rev() {
            let line = &m[i * width..][..n];
            let known: f64 = (i + 1..n).map(|j| line[j] * r[j]).sum();
            r[i] = (r[i] - known) / line[i];
        }
    }
    rows.iter().all(|x| x.is_finite())
}

//! Small pictures of bytes: straight lines and discs, pixel for pixel as Pillow and OpenCV draw them.

/// A square picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) side: usize,
    /// `[side, side]`, row by row.
    pub(crate) pixels: Vec<u8>,
}

impl Picture {
    pub(crate) fn black(side: usize) -> Self {
        Self { side, pixels: vec![0; side * side] }
    }

    /// Lights the pixels `x0..=x1` of row `y`, as far as they are inside.
    fn light(&mut self, y: i32, x0: i32, x1: i32) {
        let inside = 0..self.side as i32;
        if inside.contains(&y) && x0 < inside.end && x1 >= 0 && x0 <= x1 {
            let row = y as usize * self.side;
            let (x0, x1) = (x0.max(0) as usize, x1.min(inside.end - 1) as usize);
            self.pixels[row + x0..=row + x1].fill(255);
        }
    }

    /// A line of the given width; the points are (y, x) and both belong to it.
    pub(crate) fn line(&mut self, from: (i32, i32), to: (i32, i32), width: usize) {
        if width > 1 && from != to {
            self.fill(corners(from, to, width));
        } else {
            self.thin_line(from, to);
        }
    }

    /// Bresenham's line.
    fn thin_line(&mut self, (mut y, mut x): (i32, i32), to: (i32, i32)) {
        let (dy, dx) = ((to.0 - y).abs(), (to.1 - x).abs());
        let (sy, sx) = ((to.0 - y).signum(), (to.1 - x).signum());
        let steep = dy >= dx;
        let (long, short) = if steep { (dy, dx) } else { (dx, dy) };
        let mut error = 2 * short - long;
        for _ in 0..long {
            self.light(y, x, x);
            let turn = error >= 0;
            if steep || turn {
                y += sy;
            }
            if !steep || turn {
                x += sx;
            }
            error += 2 * short - if turn { 2 * long } else { 0 };
        }
        self.light(to.0, to.1, to.1);
    }

    /// A filled convex polygon, by scan lines; corners are (y, x).
    fn fill(&mut self, corners: [(i32, i32); 4]) {
        let edges: [Edge; 4] = std::array::from_fn(|i| Edge::new(corners[i], corners[(i + 1) % 4]));
        let top = edges.iter().map(|e| e.top).min().unwrap_or(0);
        let bottom = edges.iter().map(|e| e.bottom).max().unwrap_or(-1);
        for edge in edges.iter().filter(|e| e.top == e.bottom) {
            self.light(edge.top, edge.left, edge.right);
        }
        for y in top..=bottom {
            let mut crossings: Vec<f32> = Vec::with_capacity(8);
            for edge in edges.iter().filter(|e| e.top < e.bottom && (e.top..=e.bottom).contains(&y))
            {
                let x = edge.x_at(y);
                crossings.push(x);
                // An edge that ends here hands over to the next one: both count.
                if y == edge.bottom && y < bottom {
                    crossings.push(x);
                }
            }
            crossings.sort_by(f32::total_cmp);
            for pair in crossings.chunks_exact(2) {
                self.light(y, round_half_out(pair[0]), round_half_in(pair[1]));
            }
        }
    }

    /// Every pixel becomes the largest within the disc of radius `r` around it.
    pub(crate) fn dilated(&self, r: usize) -> Self {
        let mut out = Self::black(self.side);
        let side = self.side as i32;
        let disc = disc(r);
        for (i, &value) in self.pixels.iter().enumerate().filter(|(_, v)| **v > 0) {
            let (y, x) = (i as i32 / side, i as i32 % side);
            for (dy, dx) in &disc {
                let (y, x) = (y + dy, x + dx);
                if (0..side).contains(&y) && (0..side).contains(&x) {
                    let pixel = &mut out.pixels[(y * side + x) as usize];
                    *pixel = value.max(*pixel);
                }
            }
        }
        out
    }
}

/// The offsets (dy, dx) with dy² + dx² ≤ r².
fn disc(r: usize) -> Vec<(i32, i32)> {
    let r = r as i32;
    let all = (-r..=r).flat_map(|dy| (-r..=r).map(move |dx| (dy, dx)));
    all.filter(|(dy, dx)| dy * dy + dx * dx <= r * r).collect()
}

/// The corners of a wide line: its ends moved sideways by half the width, to whole pixels.
fn corners(from: (i32, i32), to: (i32, i32), width: usize) -> [(i32, i32); 4] {
    let (dy, dx) = (f64::from(to.0 - from.0), f64::from(to.1 - from.1));
    let length = dx.hypot(dy);
    // An even width has one pixel more on one side.
    let (near, far) = (((width - 1) / 2) as f64 / length, (width / 2) as f64 / length);
    let whole = |v: f64| (v.signum() * (v.abs() - 0.5).ceil()) as i32;
    let (left, right) = (whole(near * dy), whole(far * dy));
    let (down, up) = (whole(far * dx), whole(near * dx));
    [
        (from.0 + down, from.1 - left),
        (to.0 + down, to.1 - left),
        (to.0 - up, to.1 + right),
        (from.0 - up, from.1 + right),
    ]
}

/// A side of a polygon.
struct Edge {
    top: i32,
    bottom: i32,
    left: i32,
    right: i32,
    start: (i32, i32),
    /// Change of x per row.
    slope: f32,
}

impl Edge {
    fn new(a: (i32, i32), b: (i32, i32)) -> Self {
        let slope = if a.0 == b.0 { 0.0 } else { (b.1 - a.1) as f32 / (b.0 - a.0) as f32 };
        let (top, bottom) = (a.0.min(b.0), a.0.max(b.0));
        Self { top, bottom, left: a.1.min(b.1), right: a.1.max(b.1), start: a, slope }
    }

    fn x_at(&self, y: i32) -> f32 {
        (y - self.start.0) as f32 * self.slope + self.start.1 as f32
    }
}

/// To the nearest whole number, halves away from zero.
fn round_half_out(v: f32) -> i32 {
    v.round() as i32
}

/// To the nearest whole number, halves towards zero.
fn round_half_in(v: f32) -> i32 {
    (v.signum() * (v.abs() - 0.5).ceil()) as i32
}

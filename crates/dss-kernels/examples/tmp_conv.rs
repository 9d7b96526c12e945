use dss_kernels::Conv;
use std::time::Instant;
fn huge(n: usize) -> &'static mut [f32] { unsafe { let l = std::alloc::Layout::from_size_align(n*4, 1<<21).unwrap(); let p = std::alloc::alloc(l); if std::env::var("HUGE").is_ok() { libc::madvise(p.cast(), n*4, libc::MADV_HUGEPAGE); } std::ptr::write_bytes(p, 0, n*4); std::slice::from_raw_parts_mut(p.cast(), n) } }
fn main() {
    println!("{} {:?}", dss_kernels::simd_name(), std::thread::available_parallelism());
    for (b, l, h) in [(1, 2048, 128), (16,2048,128), (16,16384,128)] {
        let n = b * l * h;
        let u = huge(n); for i in 0..n { u[i] = (i as f32 * 0.37).sin(); }
        let k: Vec<f32> = (0..l * h).map(|i| (i as f32 * 0.11).cos()).collect();
        let (mut y, mut du, mut dk) = (huge(n), huge(n), vec![0.; l * h]);
        let mut conv = Conv::new(b, l, h).unwrap();
        let mut t = vec![];
        let mut tk = vec![]; let mut tf = vec![];
        for _ in 0..30 {
            let s = Instant::now();
            conv.set_kernel(&k).unwrap(); tk.push(s.elapsed().as_secs_f64() * 1e3);
            conv.forward(&u, &mut y).unwrap(); tf.push(s.elapsed().as_secs_f64() * 1e3);
            conv.backward(&u, &y, &mut du, &mut dk).unwrap();
            t.push(s.elapsed().as_secs_f64() * 1e3);
        }
        for t in [&mut t,&mut tk,&mut tf] { t.sort_by(f64::total_cmp); }
        println!("B{b} L{l} H{h}: med {:.2} ms min {:.2}  (kernel {:.2}, kernel+fwd {:.2})", t[6], t[0], tk[6], tf[6]);
    }
}

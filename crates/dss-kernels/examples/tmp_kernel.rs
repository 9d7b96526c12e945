use dss_kernels::kernel::*;
use std::time::Instant;
fn main() {
    for (h, n, l) in [(128, 64, 2048), (128, 64, 16384), (512, 64, 1024), (128, 64, 16000)] {
        let lre = vec![-0.5f32; n];
        let lim: Vec<f32> = (0..n).map(|i| 2607.0 / (1.0 + 3.0 * i as f32)).collect();
        let dl: Vec<f32> = (0..h).map(|i| -7.0 + 4.6 * i as f32 / h as f32).collect();
        let w: Vec<f32> = (0..h * n * 2).map(|i| (i as f32 * 0.37).sin()).collect();
        let p = Params { lambda_re: &lre, lambda_im: &lim, delta_log: &dl, w: &w };
        let mut k = vec![0.; h * l];
        let (mut a, mut b, mut c, mut d) = (lre.clone(), lim.clone(), dl.clone(), w.clone());
        let mut plan = Kernel::new(KernelConfig::new(Variant::Softmax, h, n, l).delta(Delta::Tied)).unwrap();
        let (mut t, mut tf) = (vec![], vec![]);
        for _ in 0..40 {
            let s = Instant::now();
            plan.forward(&p, &mut k).unwrap();
            tf.push(s.elapsed().as_secs_f64() * 1e3);
            plan.backward(&p, &k, ParamGrads { lambda_re: &mut a, lambda_im: &mut b, delta_log: &mut c, w: &mut d }).unwrap();
            t.push(s.elapsed().as_secs_f64() * 1e3);
        }
        t.sort_by(f64::total_cmp); tf.sort_by(f64::total_cmp);
        println!("H{h} N{n} L{l}: med {:.2} min {:.2} ms (fwd {:.2})", t[20], t[0], tf[20]);
    }
}

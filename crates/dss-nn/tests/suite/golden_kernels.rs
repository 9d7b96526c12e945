//! The kernels in both forms against golden ones: values and every gradient, f64.

use crate::common::{FORMS, Golden, assert_close, grad, tensor, values};
use dss_nn::config::Form;
use dss_nn::ops::{KernelParams, KernelSpec};

#[test]
fn values_and_gradients() {
    for name in [
        "kernel_softmax_pos_small",
        "kernel_softmax_tiny_lambda",
        "kernel_softmax_odd_c2",
        "kernel_exp_tiny_lambda",
        "kernel_exp_small_tied",
        "kernel_exp_no_scale_odd_c2",
    ] {
        let Some(golden) = Golden::read(name) else { continue };
        let &[c, h, n, _] = golden.shape("W") else { panic!() };
        let &[_, _, l] = golden.shape("K") else { panic!() };
        let delta = golden.delta("log_dt");
        let per = delta.per_channel();
        let prefix = if golden.has("grad_true.W") { "grad_true." } else { "grad." };
        for form in FORMS {
            let params = KernelParams {
                lambda: tensor(&golden.lambda(""), [n, 2]).require_grad(),
                delta_log: golden.tensor("log_dt", [h, per]).require_grad(),
                w: golden.tensor("W", [c, h, n, 2]).require_grad(),
            };
            let spec = KernelSpec { variant: golden.variant(), delta, taps: l, norm_len: l };
            let k = match form {
                Form::Fused => dss_nn::fused::kernel(&params, &spec),
                _ => dss_nn::composed::kernel(&params, &spec),
            };
            let what = |x: &str| format!("{name} {form:?} {x}");
            assert_close(&what("K"), &values(&k), golden.get("K"), 1e-10);
            let grads = (k * golden.tensor("grad.K", [c, h, l])).sum().backward();
            let check = |x: &str, got: Vec<f64>, want: &[f64]| {
                assert_close(&what(x), &got, want, 1e-10);
            };
            check("Λ", grad(&params.lambda, &grads), &golden.lambda(prefix));
            check("Δ", grad(&params.delta_log, &grads), golden.get(&format!("{prefix}log_dt")));
            check("W", grad(&params.w, &grads), golden.get(&format!("{prefix}W")));
        }
    }
}

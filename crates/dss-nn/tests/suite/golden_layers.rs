//! The layer (§3.2) in both forms against golden ones: outputs and every gradient, f64.

use crate::common::{FORMS, Golden, assert_close, channels_last, device, grad, tensor, values};
use burn::tensor::Tensor;
use dss_nn::config::{Form, Gelu};
use dss_nn::ops::{BlockParams, BlockSpec, KernelParams, KernelSpec, NormMode};

#[test]
fn values_and_gradients() {
    for name in [
        "layer_softmax",
        "layer_softmax_bidir",
        "layer_softmax_glu",
        "layer_softmax_trunc",
        "layer_exp",
        "layer_exp_bidir",
        "layer_exp_no_scale",
    ] {
        for form in FORMS {
            check(&Golden::read(name).unwrap(), form);
        }
    }
}

/// The block whose norm does nothing is x + f(x): f is the layer.
fn check(golden: &Golden, form: Form) {
    let &[c, h, n, _] = golden.shape("sd.kernel.W") else { panic!() };
    let (b, l) = (golden.shape("u")[0], golden.usize("L"));
    let glu = golden.meta("postact") == Some("glu");
    let out = if glu { "output_linear.0" } else { "output_linear" };
    let rows = if glu { 2 * h } else { h };
    let delta = golden.delta("sd.kernel.log_dt");
    let kernel = KernelParams {
        lambda: tensor(&golden.lambda("sd.kernel."), [n, 2]).require_grad(),
        delta_log: golden.tensor("sd.kernel.log_dt", [h, delta.per_channel()]).require_grad(),
        w: golden.tensor("sd.kernel.W", [c, h, n, 2]).require_grad(),
    };
    let taps = golden.meta("max_kernel_length").map_or(l, |x| x.parse().unwrap());
    let spec = KernelSpec { variant: golden.variant(), delta, taps, norm_len: taps };
    let k = match form {
        Form::Fused => dss_nn::fused::kernel(&kernel, &spec),
        _ => dss_nn::composed::kernel(&kernel, &spec),
    };
    let ones = || Tensor::ones([h], (&device(), burn::tensor::DType::F64));
    let params = BlockParams {
        k,
        d: golden.tensor("sd.D", [h]).require_grad(),
        out_weight: golden.tensor(&format!("sd.{out}.weight"), [rows, h]).require_grad(),
        out_bias: golden.tensor(&format!("sd.{out}.bias"), [rows]).require_grad(),
        gamma: ones(),
        beta: ones() - 1.0,
        past: None,
    };
    let spec = BlockSpec {
        prenorm: true,
        norm: NormMode::BatchEval { eps: 0.0, mean: ones() - 1.0, var: ones() },
        glu,
        gelu: Gelu::Erf,
        bidirectional: golden.flag("bidirectional"),
        lengths: None,
        masks: None,
    };
    let u = tensor(&channels_last(golden.get("u"), h, l), [b, l, h]).require_grad();
    let x = u.clone();
    let (y, stats) = match form {
        Form::Fused => dss_nn::fused::block(x, &params, &spec),
        _ => dss_nn::composed::block(x, &params, &spec),
    };
    assert!(stats.is_none());
    let y = y - u.clone();
    let what = |x: &str| format!("{} {form:?} {x}", golden.name);
    let check = |x: &str, got: &[f64], want: &[f64]| assert_close(&what(x), got, want, 1e-10);
    check("y", &values(&y), &channels_last(golden.get("y"), h, l));

    let g = tensor(&channels_last(golden.get("g"), h, l), [b, l, h]);
    let grads = (y * g).sum().backward();
    check("du", &grad(&u, &grads), &channels_last(golden.get("grad.u"), h, l));
    check("dΛ", &grad(&kernel.lambda, &grads), &golden.lambda("grad.kernel."));
    check("dΔ", &grad(&kernel.delta_log, &grads), golden.get("grad.kernel.log_dt"));
    check("dW", &grad(&kernel.w, &grads), golden.get("grad.kernel.W"));
    check("dD", &grad(&params.d, &grads), golden.get("grad.D"));
    let weight = golden.get(&format!("grad.{out}.weight"));
    check("dOut", &grad(&params.out_weight, &grads), weight);
    check("dBias", &grad(&params.out_bias, &grads), golden.get(&format!("grad.{out}.bias")));
}

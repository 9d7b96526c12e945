//! A sound card's callback: `cargo run -p dss-infer --example audio_callback -- MODEL < SAMPLES`, raw samples of 16 bits.

use std::io::Read;

use dss_infer::{Input, Model};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name a model file")?;
    let model = Model::load(path)?;
    let mut state = model.state()?;
    let mut logits = vec![0.0; model.outputs()];
    let mut bytes = [0; 320];
    let mut samples = [0.0; 160];
    while std::io::stdin().read_exact(&mut bytes).is_ok() {
        for (sample, bytes) in samples.iter_mut().zip(bytes.chunks_exact(2)) {
            *sample = f32::from(i16::from_le_bytes([bytes[0], bytes[1]])) / 32768.0;
        }
        model.block_step(&mut state, Input::Values(&samples), &mut logits)?;
        let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b]));
        println!("{}: class {}", state.position(), best.unwrap_or(0));
    }
    Ok(())
}

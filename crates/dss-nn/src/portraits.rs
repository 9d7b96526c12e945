//! Views of the layers of a model while it reads an example.

use crate::block::Mode;
use crate::encoder::Input;
use crate::mixer::Portrait;
use crate::model::Model;

impl Model {
    /// What there is to see in each layer or stage while it reads one sequence, of the model's whole length or shorter.
    ///
    /// # Panics
    /// If the input is not one sequence of the model's kind, or [`Self::check_len`] refuses its length.
    pub fn portraits(&self, input: Input) -> Vec<Vec<Portrait>> {
        let [batch, l] = input.dims();
        assert_eq!(batch, 1, "portraits are of one sequence");
        if !self.stages.is_empty() {
            return self.stages.iter().map(|stage| stage.portraits()).collect();
        }
        let prepared = self.prepare(l);
        let whole = [l];
        let (x, lengths) = self.embedded(input, &whole);
        let (mut x, mut side) = self.with_side(x);
        let mut all = Vec::new();
        for (i, (block, prepared)) in self.layers.iter().zip(&prepared.layers).enumerate() {
            let u = block.read_by_mixer(&x, Mode::Eval);
            all.push(block.mixer.get().portraits(u, side.as_ref()));
            let (y, _) =
                block.forward_beside(&mut side, None, x, prepared, &lengths, Mode::Eval, i);
            x = y;
        }
        all
    }
}

//! The pictures of what mixers show of themselves, whichever they are.

use super::{attention, frequencies, gallery, heatmap, layer_name, spectrum};
use crate::draw::Scene;
use crate::inspect::Inspection;
use crate::inspect::bank::KernelBank;
use crate::inspect::portraits::{Frequencies, LayerPortrait, View, Weights};

/// All of them; none of layers that have nothing to show.
pub(super) fn all(inspection: &Inspection) -> Vec<Scene> {
    let portraits = &inspection.portraits;
    let mut scenes = Vec::new();
    let attention: Vec<(&str, Vec<(usize, &Weights)>)> = by_name(portraits, |view| match view {
        View::Attention(weights) => Some(weights),
        _ => None,
    });
    for (i, (name, layers)) in attention.iter().enumerate() {
        scenes.push(attention::maps(inspection, name, i, layers));
    }
    let spectra = by_name(portraits, |view| match view {
        View::Spectrum { eigenvalues, edge } => Some((&eigenvalues[..], *edge)),
        _ => None,
    });
    let matrices: Vec<_> = spectra
        .into_iter()
        .map(|(name, layers)| spectrum::Matrix {
            name,
            edge: layers[0].1.1,
            layers: layers.into_iter().map(|(layer, (all, _))| (layer, all)).collect(),
        })
        .collect();
    if !matrices.is_empty() {
        scenes.push(spectrum::planes(inspection, &matrices));
    }
    let kernels: Vec<(usize, &KernelBank)> = portraits
        .iter()
        .filter_map(|portrait| match &portrait.view {
            View::Kernels { bank, .. } => Some((portrait.layer, bank)),
            _ => None,
        })
        .collect();
    if !kernels.is_empty() {
        let parts = kernels.iter().map(|&(layer, bank)| (layer_name(layer), bank, 0)).collect();
        scenes.push(heatmap::panels(inspection, parts));
        scenes.push(gallery::kernels(inspection, &kernels, |i| format!("kernel {i}")));
    }
    let transforms: Vec<(usize, &Frequencies)> = portraits
        .iter()
        .filter_map(|portrait| match &portrait.view {
            View::Frequencies(frequencies) => Some((portrait.layer, frequencies)),
            _ => None,
        })
        .collect();
    if !transforms.is_empty() {
        scenes.push(frequencies::curves(inspection, &transforms));
    }
    scenes
}

/// What `pick` finds, by the names of the portraits in the order of their first layers.
fn by_name<'a, T>(
    portraits: &'a [LayerPortrait],
    pick: impl Fn(&'a View) -> Option<T>,
) -> Vec<(&'a str, Vec<(usize, T)>)> {
    let mut all: Vec<(&str, Vec<(usize, T)>)> = Vec::new();
    for portrait in portraits {
        let Some(found) = pick(&portrait.view) else { continue };
        match all.iter_mut().find(|(name, _)| *name == portrait.name) {
            Some((_, layers)) => layers.push((portrait.layer, found)),
            None => all.push((portrait.name, vec![(portrait.layer, found)])),
        }
    }
    all
}

//! How paths are drawn at each image size.
//!
//! The lists are the ones the Long Range Arena publishes for its four sizes; what a list leaves open (at 64 the length of
//! a segment; at 256 also the border and the distance of the seeds) has the default of the generator it names.

/// What is drawn at one image size. Lengths are in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Parameters {
    /// Side of the image.
    pub(crate) size: usize,
    /// Border that no segment enters.
    pub(crate) padding: usize,
    /// Length of a segment.
    pub(crate) length: usize,
    /// Thickness of a segment.
    pub(crate) thickness: f64,
    /// Free space around segments; one of these is drawn per image.
    pub(crate) margins: &'static [usize],
    /// Distance between the first segments of the two target paths.
    pub(crate) seed_distance: usize,
    /// Radius of the markers.
    pub(crate) radius: f64,
    /// How straight paths are: turns beyond 90°/continuity are never taken.
    pub(crate) continuity: f64,
    /// Number of distractors that are tried, whatever the length of the paths.
    pub(crate) distractors: usize,
    /// Brightness of the two target paths.
    pub(crate) target_contrast: f64,
    /// Brightness of the distractors.
    pub(crate) distractor_contrast: f64,
}

/// Segments and markers are drawn this much larger, then made smaller.
pub(crate) const ANTIALIAS: usize = 2;
/// Segments of the target paths, from easy to hard.
pub(crate) const CONTOURS: [usize; 3] = [6, 9, 14];
/// Sizes of images.
pub(crate) const SIZES: [usize; 4] = [32, 64, 128, 256];

const ALL: [Parameters; 4] = [
    Parameters {
        size: 32,
        padding: 1,
        length: 2,
        thickness: 0.5,
        margins: &[1],
        seed_distance: 7,
        radius: 1.5,
        continuity: 1.0,
        distractors: 5,
        target_contrast: 1.5,
        distractor_contrast: 2.0,
    },
    Parameters {
        size: 64,
        padding: 1,
        length: 5,
        thickness: 1.0,
        margins: &[1],
        seed_distance: 12,
        radius: 2.5,
        continuity: 1.8,
        distractors: 5,
        target_contrast: 0.8,
        distractor_contrast: 0.8,
    },
    Parameters {
        size: 128,
        padding: 1,
        length: 5,
        thickness: 1.5,
        margins: &[2, 3],
        seed_distance: 20,
        radius: 3.0,
        continuity: 1.8,
        distractors: 8,
        target_contrast: 0.9,
        distractor_contrast: 0.9,
    },
    Parameters {
        size: 256,
        padding: 22,
        length: 5,
        thickness: 2.0,
        margins: &[3],
        seed_distance: 27,
        radius: 5.0,
        continuity: 1.8,
        distractors: 7,
        target_contrast: 1.0,
        distractor_contrast: 1.0,
    },
];

impl Parameters {
    /// Those of an image size, which must be one of [`SIZES`].
    pub(crate) fn for_size(size: usize) -> Option<&'static Self> {
        ALL.iter().find(|p| p.size == size)
    }

    /// Pixels from the middle of a segment's tile to its edge.
    pub(crate) fn tile_half(&self, margin: usize) -> usize {
        self.length + self.thickness.ceil() as usize + margin
    }
}

/// Segments of a distractor next to targets of `contour` segments.
pub(crate) fn distractor_length(contour: usize) -> usize {
    contour / 3
}

//! A sheet of Pathfinder images as one PNG: `pathfinder_sheet OUT [SIZE [CONTOUR [FIRST]]]`.
//!
//! Eight images in a row, four rows; the frame of a connected image is white, of the others grey.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;

use dss_data::pathfinder::ImageSet;

const COLUMNS: usize = 8;
const ROWS: usize = 4;
/// Pixels a side of one image on the sheet.
const SIDE: usize = 128;
const FRAME: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let out = arguments.first().ok_or("usage: pathfinder_sheet OUT [SIZE [CONTOUR [FIRST]]]")?;
    let number = |i: usize, default: usize| arguments.get(i).map_or(Ok(default), |a| a.parse());
    let (size, contour, first) = (number(1, 32)?, number(2, 14)?, number(3, 0)?);
    let generator = ImageSet::new(size, contour, 1112)?.generator();

    let side = SIDE.max(size);
    let cell = side + 2 * FRAME;
    let width = COLUMNS * cell;
    let mut sheet = vec![0u8; width * ROWS * cell];
    for i in 0..COLUMNS * ROWS {
        let image = generator.image((first + i) as u64);
        let (top, left) = (i / COLUMNS * cell, i % COLUMNS * cell);
        let frame = if image.connected { 255 } else { 90 };
        for y in 0..cell {
            let row = (top + y) * width + left;
            sheet[row..row + cell].fill(frame);
            if (FRAME..FRAME + side).contains(&y) {
                let line = (y - FRAME) * size / side * size;
                for x in 0..side {
                    sheet[row + FRAME + x] = image.pixels[line + x * size / side];
                }
            }
        }
    }
    let file = BufWriter::new(File::create(out)?);
    let mut png = png::Encoder::new(file, width as u32, (ROWS * cell) as u32);
    png.set_color(png::ColorType::Grayscale);
    png.write_header()?.write_image_data(&sheet)?;
    Ok(())
}

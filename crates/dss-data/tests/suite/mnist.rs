//! The real MNIST files, when they are there.

use crate::common;
use dss_data::{Input, MnistConfig, Target, TaskConfig};

#[test]
fn the_real_files() {
    let Some(dir) = common::data("mnist") else { return };
    let [s, p] = [TaskConfig::Smnist, TaskConfig::Pmnist]
        .map(|task| task(MnistConfig::default()).load(dir.parent(), &|_| {}).unwrap());
    assert_eq!(
        (s.train.len(), s.val.len(), s.test.len(), s.spec.len),
        (54_000, 6_000, 10_000, 784)
    );
    let mut counts = [0; 10];
    for data in [&s.train, &s.val] {
        for i in 0..data.len() {
            let Target::Class(class) = data.example(i).unwrap().target else { panic!() };
            counts[class as usize] += 1;
        }
    }
    // The known class counts of the 60,000.
    assert_eq!(counts, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]);
    let [Input::Values(plain), Input::Values(permuted)] =
        [&s, &p].map(|task| task.train.example(11).unwrap().input)
    else {
        panic!()
    };
    assert!(plain.iter().all(|v| (0.0..=1.0).contains(v)) && plain.contains(&0.0));
    assert_eq!(permuted[..4], [plain[0], plain[512], plain[256], plain[768]]);
}

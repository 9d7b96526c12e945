//! The table of all data sets. Sizes and checksums are those of the published files.

use super::{Archive, CatalogueEntry, FileChecksum, FileSet, Official};

const FROM_FILES: CatalogueEntry = CatalogueEntry {
    tasks: &[],
    generated: false,
    forms: &[],
    official: None,
    sums: &[],
    picture: false,
};
const GENERATED: CatalogueEntry = CatalogueEntry { generated: true, ..FROM_FILES };
const ONE_VERSION: Official =
    Official { about: "", licence: "", archives: &[], others: &[], then: None };

const LRA_ABOUT: &str = "Long Range Arena release (Tay et al. 2021)";
const LRA_LICENCE: &str = "none stated for the data; the code is Apache-2.0";
const LRA: &[Archive] = &[Archive {
    name: "lra_release.gz",
    url: "https://storage.googleapis.com/long-range-arena/lra_release.gz",
    bytes: 7_700_000_000,
    // None is published.
    sha256: None,
}];

pub(super) const ENTRIES: &[CatalogueEntry] = &[
    CatalogueEntry {
        tasks: &["listops"],
        forms: &[FileSet {
            about: "the tables of the Long Range Arena",
            folders: &[""],
            files: &[&["basic_train.tsv"], &["basic_val.tsv"], &["basic_test.tsv"]],
        }],
        ..GENERATED
    },
    CatalogueEntry { tasks: &["delay", "adding"], ..GENERATED },
    MNIST,
    IMDB,
    CatalogueEntry {
        tasks: &["retrieval"],
        forms: &[
            FileSet {
                about: "the tables of the Long Range Arena",
                folders: RETRIEVAL,
                files: &[
                    &["new_aan_pairs.train.tsv"],
                    &["new_aan_pairs.eval.tsv"],
                    &["new_aan_pairs.test.tsv"],
                ],
            },
            FileSet {
                about: "pairs of film reviews, with those of the task text beside them",
                folders: RETRIEVAL,
                files: &[
                    &["imdb_pairs_train.tsv"],
                    &["imdb_pairs_val.tsv"],
                    &["imdb_pairs_test.tsv"],
                ],
            },
        ],
        official: Some(Official {
            about: LRA_ABOUT,
            licence: LRA_LICENCE,
            archives: LRA,
            then: Some(
                "unpack its tables: tar -xzf DIR/lra_release.gz -C DIR lra_release/lra_release/tsv_data",
            ),
            ..ONE_VERSION
        }),
        ..FROM_FILES
    },
    CIFAR10,
    CatalogueEntry {
        tasks: &["pathfinder", "path-x"],
        official: Some(Official {
            about: LRA_ABOUT,
            licence: LRA_LICENCE,
            archives: LRA,
            then: Some("then train with --set task.dir=DIR/lra_release.gz"),
            ..ONE_VERSION
        }),
        picture: true,
        ..GENERATED
    },
    SPEECH,
    SHAKESPEARE,
    ETT,
];

const RETRIEVAL: &[&str] = &[
    "",
    "aan",
    "retrieval",
    "retrieval_imdb_pairs",
    "tsv_data",
    "lra_release/tsv_data",
    "lra_release/lra_release/tsv_data",
];

const SHAKESPEARE: CatalogueEntry = CatalogueEntry {
    tasks: &["lm"],
    forms: &[FileSet {
        about: "tiny Shakespeare; any other text with --data FILE",
        folders: &["", "text_lm", "tinyshakespeare"],
        files: &[&["tinyshakespeare_input.txt", "tinyshakespeare.txt", "input.txt"]],
    }],
    official: Some(Official {
        about: "tiny Shakespeare (Karpathy 2015)",
        licence: "public domain",
        archives: &[Archive {
            name: "input.txt",
            url: "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
            bytes: 1_115_394,
            sha256: Some("86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"),
        }],
        ..ONE_VERSION
    }),
    sums: &[FileChecksum {
        name: "tinyshakespeare_input.txt",
        sha256: "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    }],
    ..FROM_FILES
};

const ETT: CatalogueEntry = CatalogueEntry {
    tasks: &["forecast"],
    forms: &[FileSet {
        about: "ETTh1; any other table with --data FILE",
        folders: &["", "ett", "ETT-small"],
        files: &[&["ETTh1.csv"]],
    }],
    official: Some(Official {
        about: "ETTh1, the temperature of an electricity transformer, hour by hour (Zhou et al. 2021)",
        licence: "CC BY-ND 4.0",
        archives: &[Archive {
            name: "ETTh1.csv",
            url: "https://raw.githubusercontent.com/zhouhaoyi/ETDataset/main/ETT-small/ETTh1.csv",
            bytes: 2_589_657,
            sha256: Some("f18de3ad269cef59bb07b5438d79bb3042d3be49bdeecf01c1cd6d29695ee066"),
        }],
        ..ONE_VERSION
    }),
    sums: &[FileChecksum {
        name: "ETTh1.csv",
        sha256: "f18de3ad269cef59bb07b5438d79bb3042d3be49bdeecf01c1cd6d29695ee066",
    }],
    ..FROM_FILES
};

const MNIST: CatalogueEntry = CatalogueEntry {
    tasks: &["smnist", "pmnist"],
    forms: &[FileSet {
        about: "the four idx files of MNIST",
        folders: &["", "mnist"],
        files: &[
            &["train-images-idx3-ubyte", "train-images.idx3-ubyte"],
            &["train-labels-idx1-ubyte", "train-labels.idx1-ubyte"],
            &["t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte"],
            &["t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte"],
        ],
    }],
    official: Some(Official {
        about: "MNIST (LeCun, Cortes, Burges)",
        licence: "CC BY-SA 3.0",
        archives: &[
            Archive {
                name: "train-images-idx3-ubyte.gz",
                url: "https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz",
                bytes: 9_912_422,
                sha256: Some("440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
            },
            Archive {
                name: "train-labels-idx1-ubyte.gz",
                url: "https://ossci-datasets.s3.amazonaws.com/mnist/train-labels-idx1-ubyte.gz",
                bytes: 28_881,
                sha256: Some("3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
            },
            Archive {
                name: "t10k-images-idx3-ubyte.gz",
                url: "https://ossci-datasets.s3.amazonaws.com/mnist/t10k-images-idx3-ubyte.gz",
                bytes: 1_648_877,
                sha256: Some("8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
            },
            Archive {
                name: "t10k-labels-idx1-ubyte.gz",
                url: "https://ossci-datasets.s3.amazonaws.com/mnist/t10k-labels-idx1-ubyte.gz",
                bytes: 4_542,
                sha256: Some("f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
            },
        ],
        ..ONE_VERSION
    }),
    sums: &[
        FileChecksum {
            name: "train-images-idx3-ubyte",
            sha256: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        },
        FileChecksum {
            name: "train-labels-idx1-ubyte",
            sha256: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        },
        FileChecksum {
            name: "t10k-images-idx3-ubyte",
            sha256: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        },
        FileChecksum {
            name: "t10k-labels-idx1-ubyte",
            sha256: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        },
    ],
    picture: true,
    ..FROM_FILES
};

const IMDB: CatalogueEntry = CatalogueEntry {
    tasks: &["text"],
    forms: &[
        FileSet {
            about: "two tables",
            folders: &["", "imdb", "text", "aclImdb"],
            files: &[&["imdb_train.tsv"], &["imdb_test.tsv"]],
        },
        FileSet {
            about: "the official archive",
            folders: &["", "imdb", "text", "aclImdb"],
            files: &[&["aclImdb_v1.tar.gz", "aclImdb_v1.tar", "aclImdb.tar.gz", "aclImdb.tar"]],
        },
        FileSet {
            about: "the official folder",
            folders: &["", "imdb", "text"],
            files: &[
                &["aclImdb/train/neg/"],
                &["aclImdb/train/pos/"],
                &["aclImdb/test/neg/"],
                &["aclImdb/test/pos/"],
            ],
        },
        FileSet {
            about: "tables of your own",
            folders: &["imdb", "text", "aclImdb"],
            files: &[&["train.tsv"], &["test.tsv"]],
        },
        FileSet {
            about: "tables of your own",
            folders: &["imdb", "text", "aclImdb"],
            files: &[&["train.csv"], &["test.csv"]],
        },
    ],
    official: Some(Official {
        about: "Large Movie Review Dataset (Maas et al. 2011)",
        licence: "none stated; for research, with citation",
        archives: &[Archive {
            name: "aclImdb_v1.tar.gz",
            url: "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
            bytes: 84_125_825,
            sha256: Some("c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe"),
        }],
        ..ONE_VERSION
    }),
    ..FROM_FILES
};

const CIFAR: &[&str] = &["", "cifar10", "cifar-10", "cifar-10-batches-bin"];

const CIFAR10: CatalogueEntry = CatalogueEntry {
    tasks: &["image"],
    forms: &[
        FileSet {
            about: "the official batches",
            folders: CIFAR,
            files: &[
                &["data_batch_1.bin"],
                &["data_batch_2.bin"],
                &["data_batch_3.bin"],
                &["data_batch_4.bin"],
                &["data_batch_5.bin"],
                &["test_batch.bin"],
            ],
        },
        FileSet {
            about: "the official archive",
            folders: CIFAR,
            files: &[&["cifar-10-binary.tar.gz"]],
        },
        FileSet {
            about: "grey pictures as four idx files",
            folders: CIFAR,
            files: &[
                &["cifar10-gray-train-images-idx3-ubyte"],
                &["cifar10-train-labels-idx1-ubyte"],
                &["cifar10-gray-test-images-idx3-ubyte"],
                &["cifar10-test-labels-idx1-ubyte"],
            ],
        },
    ],
    official: Some(Official {
        about: "CIFAR-10, binary version (Krizhevsky 2009)",
        licence: "none stated; for research, with citation",
        archives: &[Archive {
            name: "cifar-10-binary.tar.gz",
            url: "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            bytes: 170_052_171,
            sha256: Some("c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"),
        }],
        ..ONE_VERSION
    }),
    sums: &[
        FileChecksum {
            name: "data_batch_1.bin",
            sha256: "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
        },
        FileChecksum {
            name: "data_batch_2.bin",
            sha256: "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
        },
        FileChecksum {
            name: "data_batch_3.bin",
            sha256: "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
        },
        FileChecksum {
            name: "data_batch_4.bin",
            sha256: "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
        },
        FileChecksum {
            name: "data_batch_5.bin",
            sha256: "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
        },
        FileChecksum {
            name: "test_batch.bin",
            sha256: "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
        },
    ],
    picture: true,
    ..FROM_FILES
};

/// Folders of a data folder where speech is looked for.
pub(crate) const CLIPS: &[&str] = &[
    "",
    "speech_commands",
    "speech_commands10",
    "speech_commands_v0.02",
    "speech_commands_v0.01",
    "SpeechCommands/speech_commands_v0.02",
];

const SPEECH: CatalogueEntry = CatalogueEntry {
    tasks: &["speech", "speech-mfcc"],
    forms: &[
        FileSet {
            about: "a folder for each word",
            folders: CLIPS,
            files: &[&["yes/", "train/yes/"]],
        },
        FileSet {
            about: "the official archive, v0.02",
            folders: CLIPS,
            files: &[&["speech_commands_v0.02.tar.gz", "speech_commands_v0.02.tar"]],
        },
        FileSet {
            about: "the official archive, v0.01",
            folders: CLIPS,
            files: &[&["speech_commands_v0.01.tar.gz", "speech_commands_v0.01.tar"]],
        },
        FileSet {
            about: "an archive of the ten commands",
            folders: &["speech_commands", "speech_commands10"],
            files: &[&["sc10_core_flac.tar"]],
        },
    ],
    official: Some(Official {
        about: "Speech Commands v0.02 (Warden 2018)",
        licence: "CC BY 4.0",
        archives: &[Archive {
            name: "speech_commands_v0.02.tar.gz",
            url: "https://storage.googleapis.com/download.tensorflow.org/data/speech_commands_v0.02.tar.gz",
            bytes: 2_428_923_189,
            sha256: Some("af14739ee7dc311471de98f5f9d2c9191b18aedfe957f4a6ff791c709868ff58"),
        }],
        others: &[Archive {
            name: "speech_commands_v0.01.tar.gz",
            url: "https://storage.googleapis.com/download.tensorflow.org/data/speech_commands_v0.01.tar.gz",
            bytes: 1_489_096_277,
            sha256: Some("743935421bb51cccdb6bdd152e04c5c70274e935c82119ad7faeec31780d811d"),
        }],
        then: None,
    }),
    ..FROM_FILES
};

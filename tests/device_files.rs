//! Files with the figures of one device, in every form that they come in.

#![allow(clippy::unwrap_used, reason = "a failed lookup should stop the test")]

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

use miette::Diagnostic;
use proptest::prelude::*;
use warplint::gpu::{Gpu, GpuError, Launch, Target, occupancy};
use warplint::model::Arch;

/// Writes a file, reads it as a GPU, and removes it.
fn read(content: &[u8]) -> Result<Gpu, GpuError> {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("warplint-device-{}-{number}.txt", std::process::id()));
    std::fs::File::create(&path).unwrap().write_all(content).unwrap();
    let gpu = Gpu::resolve(path.to_str().unwrap());
    std::fs::remove_file(&path).unwrap();
    gpu
}

/// Message, label and help of what is wrong with a file, with the text that the label points at.
fn problem(content: &str) -> (String, String, String) {
    let error = read(content.as_bytes()).expect_err("the file is bad");
    let label = error.labels().unwrap().next().unwrap();
    let pointed = &content[label.offset()..label.offset() + label.len()];
    (error.to_string(), format!("{} [{pointed}]", label.label().unwrap()), error.help().unwrap().to_string())
}

const EXAMPLE: &str = "device name  Example\nSMs 32\nwarp size 32\nmax threads per SM 2048\nmax threads per block 1024\n\
                       max blocks per SM 32\nregisters per SM 65536\n";

#[test]
fn a_listing_without_compute_capability_gives_the_limits_that_it_tells() {
    let gpu = read(EXAMPLE.as_bytes()).unwrap();
    assert_eq!((gpu.name.as_str(), gpu.arch, gpu.device.sm_count), ("Example", None, Some(32)));
    assert!(gpu.assumed.contains(&"register-alloc-unit") && gpu.assumed.contains(&"shared-per-sm"));
    assert!(!gpu.assumed.contains(&"registers-per-sm"));
    assert!(gpu.notes[0].contains("assumed"), "{:?}", gpu.notes);
    let answer = occupancy(&gpu.target, &Launch::new(12, 256)).unwrap();
    assert_eq!((answer.blocks_per_sm, answer.limits.registers), (8, Some(16)));
    assert_eq!(answer.blocks_per_sm * gpu.device.sm_count.unwrap(), 256);
    assert!(gpu.runs("sm_90a".parse().unwrap()));
}

#[test]
fn a_listing_that_names_a_known_product_takes_its_granularities() {
    let text = "device name  NVIDIA A100\nSMs  108\nshared memory per SM  164 KB\nshared mem per block  48 KB\n\
                L2 cache  40 MB\ndevice memory  40 GB\nmax threads per SM 2,048\n";
    let gpu = read(text.as_bytes()).unwrap();
    assert_eq!(gpu.arch, Some(Arch::new(8, 0)));
    assert_eq!(gpu.target.as_ref(), Target::of(Arch::new(8, 0)).unwrap());
    assert_eq!((gpu.device.l2_mb, gpu.device.memory_gb), (Some(40.0), Some(40.0)));
    assert!(gpu.assumed.is_empty());
}

#[test]
fn limits_that_only_one_compute_capability_has_tell_which_it_is() {
    let text = "threads per SM: 1536\nmax blocks per SM: 24\nregisters per SM: 65536\nshared memory per SM (KB): 228\n";
    // 10.1 and 11.0 are the same chip under two numbers, so this stays open.
    assert_eq!(read(text.as_bytes()).unwrap().arch, None);
    let text = "threads per SM: 2048\nmax blocks per SM: 32\nshared memory per SM: 164 KiB\n";
    assert_eq!(read(text.as_bytes()).unwrap().arch, Some(Arch::new(8, 0)));
}

#[test]
fn names_of_the_c_structure_are_read_with_any_separator() {
    let text = "prop.name = NVIDIA H200\nprop.major: 9\nminor=0\n  multiProcessorCount 132\n\
                \"regsPerMultiprocessor\": 65536,\nsharedMemPerMultiprocessor\t233472\nclockRate 1980000\n\
                memoryClockRate=2619000\nmemoryBusWidth: 6144\nmaxThreadsDim[0]: 1024\nl2CacheSize: 52428800\n";
    let gpu = read(text.as_bytes()).unwrap();
    assert_eq!((gpu.arch, gpu.device.sm_count), (Some(Arch::new(9, 0)), Some(132)));
    assert_eq!((gpu.device.boost_mhz, gpu.device.l2_mb), (Some(1980.0), Some(50.0)));
    assert_eq!(gpu.device.bandwidth_gbs.unwrap().round(), 4023.0);
    assert_eq!(gpu.target.as_ref(), Target::of(Arch::new(9, 0)).unwrap());
}

const DEVICE_QUERY: &str = r#"
 CUDA Device Query (Runtime API) version (CUDART static linking)

Detected 2 CUDA Capable device(s)

Device 0: "NVIDIA A100-SXM4-40GB"
  CUDA Driver Version / Runtime Version          12.2 / 11.8
  CUDA Capability Major/Minor version number:    8.0
  Total amount of global memory:                 40536 MBytes (42505273344 bytes)
  (108) Multiprocessors, ( 64) CUDA Cores/MP:    6912 CUDA Cores
  GPU Max Clock rate:                            1410 MHz (1.41 GHz)
  Memory Clock rate:                             1215 Mhz
  Memory Bus Width:                              5120-bit
  L2 Cache Size:                                 41943040 bytes
  Maximum Texture Dimension Size (x,y,z)         1D=(131072), 2D=(131072, 65536), 3D=(16384, 16384, 16384)
  Total amount of constant memory:               65536 bytes
  Total amount of shared memory per block:       49152 bytes
  Total shared memory per multiprocessor:        167936 bytes
  Total number of registers available per block: 65536
  Warp size:                                     32
  Maximum number of threads per multiprocessor:  2048
  Maximum number of threads per block:           1024
  Max dimension size of a thread block (x,y,z): (1024, 1024, 64)
  Device has ECC support:                        Enabled
  Device PCI Domain ID / Bus ID / location ID:   0 / 7 / 0

Device 1: "NVIDIA A10G"
  CUDA Capability Major/Minor version number:    8.6
  (080) Multiprocessors, (128) CUDA Cores/MP:    10240 CUDA Cores
  Maximum number of threads per multiprocessor:  1536

deviceQuery, CUDA Driver = CUDART, CUDA Driver Version = 12.2, NumDevs = 2
Result = PASS
"#;

#[test]
fn a_device_query_dump_gives_its_first_device_and_names_the_others() {
    let gpu = read(DEVICE_QUERY.as_bytes()).unwrap();
    assert_eq!((gpu.name.as_str(), gpu.arch), ("NVIDIA A100-SXM4-40GB", Some(Arch::new(8, 0))));
    assert_eq!((gpu.device.sm_count, gpu.device.boost_mhz), (Some(108), Some(1410.0)));
    assert_eq!(gpu.device.bandwidth_gbs.unwrap().round(), 1555.0);
    assert_eq!(gpu.target.as_ref(), Target::of(Arch::new(8, 0)).unwrap());
    assert_eq!(gpu.notes.len(), 1);
    assert!(gpu.notes[0].ends_with("NVIDIA A10G"), "{:?}", gpu.notes);
    assert_eq!(gpu.product.unwrap().id, "a100-sxm4-40gb");
    assert!(!gpu.runs(Arch::new(9, 0)));
}

#[test]
fn a_dump_with_windows_line_ends_reads_the_same() {
    let windows = read(DEVICE_QUERY.replace('\n', "\r\n").as_bytes()).unwrap();
    let unix = read(DEVICE_QUERY.as_bytes()).unwrap();
    assert_eq!((windows.name, windows.device), (unix.name, unix.device));
}

#[test]
fn what_python_prints_is_read_in_both_generations() {
    let old = "_CudaDeviceProperties(name='NVIDIA A100-SXM4-80GB', major=8, minor=0, total_memory=81920MB, \
               multi_processor_count=108)\n";
    let new = "_CudaDeviceProperties(name='NVIDIA H100 80GB HBM3', major=9, minor=0, total_memory=81079MB, \
               multi_processor_count=132, uuid=4f0e8f5e-0000-1111-2222-333344445555, pci_bus_id=25, \
               L2_cache_size=50MB)";
    let gpu = read(old.as_bytes()).unwrap();
    assert_eq!((gpu.arch, gpu.device.sm_count, gpu.device.memory_gb), (Some(Arch::new(8, 0)), Some(108), Some(80.0)));
    let gpu = read(new.as_bytes()).unwrap();
    assert_eq!((gpu.name.as_str(), gpu.arch), ("NVIDIA H100 80GB HBM3", Some(Arch::new(9, 0))));
    assert_eq!((gpu.device.sm_count, gpu.device.l2_mb), (Some(132), Some(50.0)));
    assert!(read(format!("{new}\n{old}").as_bytes()).unwrap().notes[0].contains("A100"));
}

#[test]
fn a_limit_of_the_file_beats_the_table_and_is_cited() {
    let gpu = read(b"compute capability 8.6\nshared memory per SM 64 KB\n").unwrap();
    assert_eq!(gpu.target.shared_per_sm, 65_536);
    assert_eq!(gpu.target.shared_per_block_optin, 64_512);
    assert_eq!(gpu.target.shared_configs_kib, [0, 8, 16, 32, 64]);
    let figures = gpu.target.figures();
    let figure = figures.iter().find(|figure| figure.key == "shared-per-sm").unwrap();
    assert_eq!(figure.sources, ["device-file"]);
    assert!(gpu.target.citation("device-file").is_some());
}

#[test]
fn a_missing_line_is_named() {
    let (message, label, help) = problem("SMs 32\nmax threads per SM 2048\nregisters per SM 65536\n");
    assert_eq!(message, "the device file lacks `max blocks per SM`");
    assert_eq!(label, "in these figures [SMs 32]");
    assert!(help.contains("compute capability 8.0"), "{help}");
    assert_eq!(problem("major 8\nSMs 108\n").0, "the device file lacks `minor`");
}

#[test]
fn a_value_that_cannot_be_read_is_pointed_at() {
    assert_eq!(problem("registers per SM: many\n").1, "expected a number [many]");
    assert_eq!(problem("compute capability: new\n").1, "expected two numbers, as in 8.0 [new]");
    assert_eq!(problem("SMs 0\n").1, "this is zero [0]");
    assert_eq!(problem("major 8\nminor 0\nwarp size 64\n").1, "this says otherwise [64]");
    assert_eq!(problem("shared memory per SM 164 miles\n").0, "`miles` is no unit for this figure");
    assert!(problem("cc 8.0\nshared memory per SM 164\n").1.contains("is the unit missing?"));
    assert_eq!(problem("_CudaDeviceProperties(name='x', major=8, \n").1, "expected `name=value` or `)` [ ]");
    assert_eq!(problem("hello\nworld\n").0, "no device figures were found");
}

#[test]
fn a_value_that_is_no_number_of_ours_is_never_passed_over() {
    for (line, pointed) in [
        ("warpSize -1", "-1"),
        ("reservedSharedMemPerBlock nan", "nan"),
        ("L2 cache -inf", "-inf"),
        ("SMs 1e5", "1e5"),
        ("max threads per SM: 1e+3", "1e+3"),
        ("registers per SM 0x10000", "0x10000"),
        ("registers per block many", "many"),
        ("max blocks per SM 1.2.3", "1.2.3"),
    ] {
        assert_eq!(problem(&format!("cc 8.0\n{line}\n")).1, format!("expected a number [{pointed}]"), "{line}");
    }
    assert_eq!(problem("cc 8e5\n").1, "expected two numbers, as in 8.0 [8e5]");
    assert_eq!(problem("cc: -8.0\n").1, "expected two numbers, as in 8.0 [-8.0]");
    assert!(read(b"cc 8.0\nmemory limits\nclock domains 3\nSMs\nwarp size of the device\n").is_ok());
}

#[test]
fn a_figure_that_contradicts_an_earlier_one_is_pointed_at() {
    let (message, label, _) = problem("cc 8.0\nSMs 108\nSMs 109\n");
    assert_eq!(message, "a device figure is told twice, and differently");
    assert_eq!(label, "before it was 108 [109]");
    assert_eq!(problem("cc 8.0\nmajor 9\n").1, "before it was 8 [9]");
    assert!(read(b"cc 8.0\nSMs 108\nSMs: 108\nmemory 80 GB\ntotalGlobalMem 84987740160\n").is_ok());
}

#[test]
fn a_name_cannot_steer_a_terminal() {
    let text = format!("{}\ndevice name  second\u{7}\n", EXAMPLE.replace("Example", "A\u{1b}[31m\u{202e}B"));
    let gpu = read(text.as_bytes()).unwrap();
    assert_eq!(gpu.name, "A\\u{1b}[31m\\u{202e}B");
    assert!(gpu.notes.iter().any(|note| note.ends_with("not used: second\\u{7}")), "{:?}", gpu.notes);
}

#[test]
fn an_empty_file_and_a_huge_one_are_refused() {
    assert_eq!(read(b"").unwrap_err().to_string(), "no device figures were found");
    assert!(matches!(read(&vec![b'a'; (1 << 20) + 1]), Err(GpuError::TooLarge { .. })));
    assert!(matches!(read(&vec![b'\n'; 1 << 20]), Err(GpuError::File(_))));
}

#[test]
fn an_architecture_that_nothing_is_published_about_is_assumed_from_its_limits() {
    let gpu = read(format!("{EXAMPLE}compute capability 13.0\n").as_bytes()).unwrap();
    assert_eq!(gpu.arch, Some(Arch::new(13, 0)));
    assert!(gpu.notes[0].contains("sm_130"), "{:?}", gpu.notes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_name_panics(text in "\\PC{0,24}") {
        let _ = Gpu::resolve(&text);
    }

    #[test]
    fn no_bytes_panic(content in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&content);
    }

    #[test]
    fn no_mixture_of_what_such_files_hold_panics(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "max threads per SM", "registers per SM", "max blocks per SM", "shared memory per SM", "major", "minor",
                "compute capability", "_CudaDeviceProperties(", "name=", "'", "\"", ")", ",", "=", ":", "(", " ", "\n",
                "108", "0", "1", "32", "65536", "99999999999999999999999", ".", "1.5", "KB", "GB", "é", "Device 0:",
                ") Multiprocessors", "prop.", "SMs", "warp size", "L2 cache", "\r", "\t", "2048",
            ]),
            0..40,
        ),
    ) {
        if let Ok(gpu) = read(parts.concat().as_bytes()) {
            let _ = occupancy(&gpu.target, &Launch::new(64, 256));
            let _ = warplint::gpu::next(&gpu.target, &Launch::new(64, 256));
        }
    }
}
